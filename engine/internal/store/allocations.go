package store

import (
	"bytes"
	"cmp"
	"math"
	"slices"

	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/leases"
	"github.com/weir-project/weir/engine/internal/rule"
)

// The allocations of a limiter are the units that holds may give back to it: a set of leases in an entry of their own,
// with the limiter's name and limit. They are valid for the current state of the limiter only. When the limiter becomes
// idle, is dropped or gets a limit that counts otherwise, nothing can be given back any more, and the allocations are
// void.
//
// An allocation that ends by itself gives its units back as of its end, even if the store
// notices the end later. Every decision on the limiter first gives back ended allocations
// (RestoreUnits). So no answer depends on when the store notices the end.

// allocation is units of one hold that may be given back to one limiter. A hold that was extended has several
// allocations in a limiter if other units were taken between its own. They end together.
type allocation struct {
	endsNs int64
	units  int64
	keep   bool          // the units stay taken when the hold ends by itself
	mark   arith.Uint128 // the position of the units in the limiter; see markOf
	id     []byte
	at     leases.Place
}

// maxParts bounds the allocations of one hold in one limiter. Beyond it, the oldest units of the hold count as used.
const maxParts = 16

// markLen is the length of the mark, which precedes the id in a lease.
const markLen = 16

// held reports whether units of an algorithm can be held.
func held(a rule.Algorithm) bool { return a >= rule.TokenBucket && a <= rule.SlidingCounter }

// allocationOf decodes an allocation that is stored as a lease.
func allocationOf(at leases.Place, x leases.Lease) allocation {
	units := max(x.Units, -x.Units)
	return allocation{x.ExpiresNs, units, x.Units < 0, readWide(x.ID), x.ID[markLen:], at}
}

// lease returns the units of the lease that stores an allocation: below zero if the units stay taken in the end.
func (x *allocation) lease(units int64) int64 {
	if x.keep {
		return -units
	}
	return units
}

// OpenAllocations finds the allocations of a limiter. Ref is 0 if it has none.
func (s *Store) OpenAllocations(c *Cell) (k Cell) {
	if s.Counts.Entries[kindAllocations] > 0 {
		k = Cell{Hash: c.Hash, Key: c.Key, Space: Allocations}
		s.Open(&k)
	}
	return k
}

// StaleAllocations reports whether allocations do not belong to the current state of the limiter.
func StaleAllocations(c, k *Cell) bool {
	if c.Live && c.kept != 0 {
		return c.kept != k.Entry.Limit()
	}
	return !c.Live || c.Entry.Limit() != k.Entry.Limit()
}

// allocationsIn lists a set. The list is valid until the next call, or until the set changes.
func (s *Store) allocationsIn(set *leases.Set) []allocation {
	s.listed = s.listed[:0]
	for at, x := range set.All(&s.Slab) {
		s.listed = append(s.listed, allocationOf(at, x))
	}
	return s.listed
}

// HasAllocations reports whether any limiter has allocations.
func (s *Store) HasAllocations() bool { return s.Counts.Entries[kindAllocations] > 0 }

// UpToDate brings a limiter that was just opened to the definition in force, and gives units of ended holds back to it.
func (s *Store) UpToDate(c *Cell) {
	s.catchUp(c)
	s.RestoreUnits(c)
}

// RestoreUnits gives units of ended holds back to a limiter that was just opened.
func (s *Store) RestoreUnits(c *Cell) {
	if s.HasAllocations() {
		s.releaseDue(c, math.MaxInt)
	}
}

// shortRelease is how many allocations the collection of ended allocations gives back in one step, and how many a brief
// look does: less than the work of a check.
const shortRelease = 16

// releaseDue is RestoreUnits for a store that has allocations. It drops void allocations. It may give back only most
// allocations of a list, those that ended first.
func (s *Store) releaseDue(c *Cell, most int) {
	k := s.OpenAllocations(c)
	if k.Ref == 0 {
		return
	}
	l := s.listOf(k.Entry)
	switch {
	case StaleAllocations(c, &k):
		if !s.Looking {
			s.Drop(&k)
		}
	case s.NowNs < s.IdleAtNs(k.Entry):
	case s.Looking && s.Brief && l != nil && l.Due(s.NowNs, shortRelease):
		s.Skipped = true
	case s.Looking:
		s.copyForRead(c)
		s.releaseEnded(c.Entry, s.endedOf(k.Entry, s.NowNs))
		c.Live = !s.idle(c.Entry)
	case l != nil:
		s.releaseListed(c.Entry, l, most)
		s.storeList(&k, l)
		s.Reduced(c)
	default:
		set := leases.Read(k.Entry.State())
		s.storeMarks(&set, s.releaseEnded(c.Entry, s.allAllocations(k.Entry)))
		set.Sweep(&s.Slab, s.NowNs)
		s.storeAllocations(&k, &set)
		s.Reduced(c)
	}
}

// inOrder sorts allocations of a set in the order in which their units were taken. The others of equal marks are void,
// or their order makes no difference.
func (s *Store) inOrder(list []allocation) []allocation {
	slices.SortFunc(list, func(a, b allocation) int {
		return cmp.Or(a.mark.Compare(b.mark), bytes.Compare(a.id, b.id), cmp.Compare(a.units, b.units))
	})
	return list
}

// storeMarks writes the marks of allocations back to the arena.
func (s *Store) storeMarks(set *leases.Set, list []allocation) {
	for i := range list {
		writeWide(set.IDAt(&s.Slab, list[i].at), list[i].mark)
	}
}

// storeAllocations stores a set from which allocations were removed. It drops the entry of an empty set.
func (s *Store) storeAllocations(k *Cell, set *leases.Set) {
	set.Write(k.Entry.State())
	if set.Count == 0 {
		s.Drop(k)
		return
	}
	k.Relink = true
	s.Touched(k)
}

// AddAllocation records that a hold, which ends at endsNs, took units from a limiter just now. If the limiter was
// evicted meanwhile or memory is exhausted, it records nothing and returns false. It evicts nothing: the limiter may
// be the only entry that no allocation protects yet.
func (s *Store) AddAllocation(c *Cell, id []byte, units, endsNs int64, keep bool) bool {
	if !c.Live {
		return false
	}
	s.keepsAll = true
	defer func() { s.keepsAll = false }()
	k, limit, set := Cell{Hash: c.Hash, Key: c.Key, Space: Allocations}, *s.Limits.At(c.Entry.Limit()), leases.Set{}
	now := allocation{endsNs: endsNs, units: units, keep: keep, mark: s.markOf(c.Entry)}
	if s.Open(&k); k.Ref != 0 {
		l := s.listOf(k.Entry)
		if l == nil && !s.FewHolds && leases.Read(k.Entry.State()).Count >= listFrom && !s.memory.closed() {
			l = s.spread(k.Entry)
		}
		if l != nil {
			return s.addListed(c, &k, l, id, &now)
		}
		set = leases.Read(k.Entry.State())
		if own := s.allocationsOf(&set, id); len(own) > 0 {
			if s.addToNewest(c, &set, own, &now) {
				s.storeAllocations(&k, &set)
				return true
			}
			if len(own) >= maxParts {
				set.Remove(&s.Slab, own[0].at)
				set.Write(k.Entry.State())
			}
		}
	}
	x := leases.Lease{ExpiresNs: endsNs, Units: now.lease(units), ID: append(s.allocationName[:markLen], id...)}
	writeWide(x.ID, now.mark)
	if !s.AdmitBytes(set.Growth(&s.Slab, x.ID), c.Ref) || !s.Ensure(&k, kindAllocations, leases.StateLen) {
		return false
	}
	if k.Entry.Limit() == 0 {
		s.SetLimit(k.Entry, &limit)
	}
	set.Add(&s.Slab, x)
	set.Write(k.Entry.State())
	k.Relink = true
	s.Touched(&k)
	return true
}

// MayAllocate reports whether memory is left for an allocation of a hold in a limiter.
func (s *Store) MayAllocate(c *Cell, id []byte) bool {
	k, name := Cell{Hash: c.Hash, Key: c.Key, Space: Allocations}, s.allocationName[:markLen+len(id)]
	s.Open(&k)
	switch {
	case !s.memory.closed():
		return true
	case k.Ref == 0:
		return s.Slab.HasSlot(EntryLen(len(c.Key), leases.StateLen)) &&
			s.Slab.HasSlot(new(leases.Set).Growth(&s.Slab, name))
	}
	if l := s.listOf(k.Entry); l != nil {
		return !l.Full()
	}
	set := leases.Read(k.Entry.State())
	n := set.Growth(&s.Slab, name)
	return n == 0 || s.Slab.HasSlot(n)
}

// allocationsOf lists the allocations of one hold in the order in which their units were taken. The list is valid
// until the set changes.
func (s *Store) allocationsOf(set *leases.Set, id []byte) []allocation {
	own := slices.DeleteFunc(s.allocationsIn(set), func(x allocation) bool { return string(x.id) != string(id) })
	slices.SortFunc(own, func(a, b allocation) int { // void marks may be equal
		return cmp.Or(a.mark.Compare(b.mark), cmp.Compare(a.units, b.units))
	})
	return own
}

// addToNewest adds units that a hold took just now to its newest allocation, if no units of others are between them.
func (s *Store) addToNewest(c *Cell, set *leases.Set, own []allocation, now *allocation) bool {
	newest := &own[len(own)-1]
	if newest.mark != s.markBefore(c, now.units) {
		return false
	}
	set.SetUnits(&s.Slab, newest.at, newest.lease(newest.units+now.units))
	writeWide(set.IDAt(&s.Slab, newest.at), now.mark)
	return true
}

// markBefore returns the mark that a hold's newest allocation has if no units of others were taken between it and the
// units that the hold took just now.
func (s *Store) markBefore(c *Cell, units int64) arith.Uint128 {
	mark := s.markOf(c.Entry)
	if l := s.Limits.At(c.Entry.Limit()); IsBucket(c.Entry.Kind()) {
		return mark.Sub(l.Rate.Grains(units))
	}
	return mark
}

// CompleteAllocations removes a hold's allocations from a limiter and gives up to the given number of its units back,
// those that were taken last first.
func (s *Store) CompleteAllocations(c *Cell, id []byte, units int64) {
	k := s.OpenAllocations(c)
	if k.Ref == 0 || !c.Live {
		return
	}
	if l := s.listOf(k.Entry); l != nil {
		s.completeListed(c, &k, l, id, units)
		return
	}
	set := leases.Read(k.Entry.State())
	own := slices.Clone(s.allocationsOf(&set, id))
	if len(own) == 0 {
		return
	}
	others := slices.DeleteFunc(s.allocationsIn(&set), func(x allocation) bool { return string(x.id) == string(id) })
	for _, x := range slices.Backward(own) {
		back := min(units, x.units)
		units -= back
		moveLater(others, x.mark, s.releaseAllocation(c.Entry, &x, back, s.NowNs))
	}
	s.storeMarks(&set, others)
	s.removeOldest(&set, id, len(own))
	s.storeAllocations(&k, &set)
	s.Reduced(c)
}

// removeOldest removes the n allocations of a hold whose units were taken first.
func (s *Store) removeOldest(set *leases.Set, id []byte, n int) {
	for range n {
		set.Remove(&s.Slab, s.allocationsOf(set, id)[0].at)
	}
}

// UseAllocations records that at most some units of a hold were not used: those that were taken last. The others are
// not given back any more.
func (s *Store) UseAllocations(c *Cell, id []byte, unused int64) {
	k := s.OpenAllocations(c)
	if k.Ref == 0 || !c.Live {
		return
	}
	if l := s.listOf(k.Entry); l != nil {
		s.useListed(&k, l, id, unused)
		return
	}
	set := leases.Read(k.Entry.State())
	used := -unused
	own := s.allocationsOf(&set, id)
	for _, x := range own {
		used += x.units
	}
	for range own {
		x := &s.allocationsOf(&set, id)[0]
		if used < x.units {
			set.SetUnits(&s.Slab, x.at, x.lease(x.units-max(used, 0)))
			break
		}
		used -= x.units
		set.Remove(&s.Slab, x.at)
	}
	s.storeAllocations(&k, &set)
}

// RenewAllocations sets the end of a hold's allocations in a limiter.
func (s *Store) RenewAllocations(c *Cell, id []byte, endsNs int64) {
	k := s.OpenAllocations(c)
	if k.Ref == 0 || !c.Live {
		return
	}
	if l := s.listOf(k.Entry); l != nil {
		l.Renew(id, endsNs)
		s.storeList(&k, l)
		return
	}
	set := leases.Read(k.Entry.State())
	for _, x := range s.allocationsOf(&set, id) {
		set.Renew(&s.Slab, x.at, endsNs)
	}
	s.storeAllocations(&k, &set)
}

// dropAllocations drops the allocations of a limiter that is being dropped.
func (s *Store) dropAllocations(c *Cell) {
	if k := s.OpenAllocations(c); k.Ref != 0 {
		s.Drop(&k)
	}
}

// collectAllocations gives back the ended allocations in an entry of allocations, up to most of a list.
func (s *Store) collectAllocations(r arena.Ref, most int) {
	key := append([]byte(nil), Entry(s.Slab.At(r)).Key()...)
	c := Cell{Hash: s.hashKey(key), Key: key}
	s.Open(&c)
	s.catchUp(&c)
	s.releaseDue(&c, most)
}
