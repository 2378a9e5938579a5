package store

import (
	"cmp"
	"slices"

	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/leases"
	"github.com/weir-project/weir/engine/internal/rule"
)

// The allocations of a limiter are the units that holds may give back to it: a set of leases
// in an entry of their own, with the limiter's name and limit. They are valid for the current
// state of the limiter only. When the limiter becomes idle, is dropped or gets another limit,
// nothing can be given back any more, and the allocations are void.
//
// An allocation that ends by itself gives its units back as of its end, even if the store
// notices the end later. Every decision on the limiter first gives back ended allocations
// (RestoreUnits). So no answer depends on when the store notices the end.

// allocation is the units of one hold that may be given back to one limiter.
type allocation struct {
	endsNs int64
	units  int64
	mark   arith.Uint128 // the position of the units in the limiter; see markOf
	id     []byte
	at     leases.Place
}

// markLen is the length of the mark, which precedes the id in a lease.
const markLen = 16

// held reports whether units of an algorithm can be held.
func held(a rule.Algorithm) bool { return a >= rule.TokenBucket && a <= rule.SlidingCounter }

// allocationOf decodes an allocation that is stored as a lease.
func allocationOf(at leases.Place, x leases.Lease) allocation {
	return allocation{x.ExpiresNs, x.Units, readWide(x.ID), x.ID[markLen:], at}
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
		s.releaseDue(c)
	}
}

// releaseDue is RestoreUnits for a store that has allocations. It drops void allocations.
func (s *Store) releaseDue(c *Cell) {
	k := s.OpenAllocations(c)
	if k.Ref == 0 {
		return
	}
	set := leases.Read(k.Entry.State())
	switch {
	case StaleAllocations(c, &k):
		if !s.Looking {
			s.Drop(&k)
		}
	case s.NowNs < set.SoonestNs:
	case s.Looking:
		s.copyForRead(c)
		s.releaseEnded(c.Entry, s.allocationsIn(&set))
		c.Live = !s.idle(c.Entry)
	default:
		s.storeMarks(&set, s.releaseEnded(c.Entry, s.allocationsIn(&set)))
		set.Sweep(&s.Slab, s.NowNs)
		s.storeAllocations(&k, &set)
		s.Reduced(c)
	}
}

// releaseEnded gives ended allocations back to a limiter, in the order of their ends. It returns the allocations that
// have not ended.
func (s *Store) releaseEnded(e Entry, list []allocation) (rest []allocation) {
	slices.SortFunc(list, func(a, b allocation) int { return cmp.Compare(a.endsNs, b.endsNs) })
	for len(list) > 0 && list[0].endsNs <= s.NowNs {
		s.releaseAllocation(e, &list[0], list[0].units, list[0].endsNs, list[1:])
		list = list[1:]
	}
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

// AddAllocation records that a hold took units from a limiter just now. If memory is exhausted, it records
// nothing, and the units stay taken even if the hold is cancelled.
func (s *Store) AddAllocation(c *Cell, id []byte, units, endsNs int64) {
	if !c.Live {
		return
	}
	k, limit, set := Cell{Hash: c.Hash, Key: c.Key, Space: Allocations}, *s.Limits.At(c.Entry.Limit()), leases.Set{}
	if s.Open(&k); k.Ref != 0 {
		set = leases.Read(k.Entry.State())
	}
	x := leases.Lease{ExpiresNs: endsNs, Units: units, ID: append(s.allocationName[:markLen], id...)}
	writeWide(x.ID, s.markOf(c.Entry))
	if !s.AdmitBytes(set.Growth(&s.Slab, x.ID), c.Ref) || !s.Ensure(&k, kindAllocations, leases.StateLen) {
		return
	}
	if k.Entry.Limit() == 0 {
		s.SetLimit(k.Entry, &limit)
	}
	set.Add(&s.Slab, x)
	set.Write(k.Entry.State())
	k.Relink = true
	s.Touched(&k)
}

// CompleteAllocation removes a hold's allocation from a limiter and gives up to the given number of its units back.
func (s *Store) CompleteAllocation(c *Cell, id []byte, units int64) {
	k := s.OpenAllocations(c)
	if k.Ref == 0 || !c.Live {
		return
	}
	set := leases.Read(k.Entry.State())
	list := s.allocationsIn(&set)
	i := slices.IndexFunc(list, func(x allocation) bool { return string(x.id) == string(id) })
	if i < 0 {
		return
	}
	x := list[i]
	others := slices.Delete(list, i, i+1)
	s.releaseAllocation(c.Entry, &x, min(units, x.units), s.NowNs, others)
	s.storeMarks(&set, others)
	set.Remove(&s.Slab, x.at)
	s.storeAllocations(&k, &set)
	s.Reduced(c)
}

// dropAllocations drops the allocations of a limiter that is being dropped.
func (s *Store) dropAllocations(c *Cell) {
	if k := s.OpenAllocations(c); k.Ref != 0 {
		s.Drop(&k)
	}
}

// collectAllocations gives back the ended allocations in an entry of allocations.
func (s *Store) collectAllocations(r arena.Ref) {
	key := append([]byte(nil), Entry(s.Slab.At(r)).Key()...)
	c := Cell{Hash: s.hashKey(key), Key: key}
	s.Open(&c)
	s.UpToDate(&c)
}
