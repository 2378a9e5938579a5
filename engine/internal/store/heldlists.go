package store

import (
	"cmp"
	"encoding/binary"
	"iter"
	"slices"

	"github.com/weir-project/weir/engine/internal/allocations"
	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/codec"
	"github.com/weir-project/weir/engine/internal/leases"
	"github.com/weir-project/weir/engine/internal/rule"
)

// A limiter with many allocations keeps them in a list (package allocations) instead of a set of leases. A set takes
// half the memory, and finds an allocation among a few as fast; a list finds it among a million. The two forms give the
// same answers and have the same hash. A list stays one until it is empty.
//
// The state of the entry is then the number of the list, and listMark in place of the count of a set.

// listFrom is the number of allocations from which on a limiter has a list.
const listFrom = 32

const listMark = 1<<32 - 1

// AllocationBlocks is the class byte of a stored block of a list. Its key is the limiter's name and the number of the
// block in numberLen bytes.
const AllocationBlocks, numberLen = byte('u'), 8

// listOf returns the list of an entry of allocations, or nil if it has a set.
func (s *Store) listOf(e Entry) *allocations.List {
	if st := e.State(); le.Uint32(st[4:]) == listMark {
		return s.lists[le.Uint32(st)]
	}
	return nil
}

// makeList makes an empty list the state of an entry.
func (s *Store) makeList(e Entry) *allocations.List {
	l, at := allocations.New(&s.Used, s.hashKey), slices.Index(s.lists, nil)
	if at < 0 {
		at, s.lists = len(s.lists), append(s.lists, nil)
	}
	s.lists[at] = l
	clear(e.State()[:leases.StateLen])
	le.PutUint32(e.State(), uint32(at))
	le.PutUint32(e.State()[4:], listMark)
	return l
}

// freeAllocations frees what the state of an entry of allocations refers to.
func (s *Store) freeAllocations(e Entry) {
	l := s.listOf(e)
	if l == nil {
		set := leases.Read(e.State())
		set.Clear(&s.Slab)
		return
	}
	s.noteGone(e.Key(), l)
	l.Free()
	s.noteGone(e.Key(), l)
	s.lists[le.Uint32(e.State())] = nil
	clear(e.State()[:leases.StateLen])
}

// noteGone records that stored blocks of a list are gone.
func (s *Store) noteGone(name []byte, l *allocations.List) {
	for _, number := range l.Gone() {
		s.changes.noteRemovalOf(AllocationBlocks, le.AppendUint64(slices.Clone(name), number))
	}
}

// ListBytes returns the memory of all lists.
func (s *Store) ListBytes() (n int64) {
	for _, l := range s.lists {
		if l != nil {
			n += l.Bytes()
		}
	}
	return n
}

// spread replaces the set of an entry by a list.
func (s *Store) spread(e Entry) *allocations.List {
	set := leases.Read(e.State())
	var all []allocations.Allocation
	for _, x := range s.inOrder(s.allocationsIn(&set)) {
		all = append(all, allocations.Allocation{
			EndsNs: x.endsNs, Units: x.lease(x.units), Mark: x.mark, ID: slices.Clone(x.id),
		})
	}
	set.Clear(&s.Slab)
	l := s.makeList(e)
	for _, x := range all {
		l.Add(x)
	}
	return l
}

// allocationFrom converts an allocation of a list.
func allocationFrom(x allocations.Allocation) allocation {
	return allocation{endsNs: x.EndsNs, units: max(x.Units, -x.Units), keep: x.Units < 0, mark: x.Mark, id: x.ID}
}

// storeList stores a list that changed. It drops the entry of an empty list.
func (s *Store) storeList(k *Cell, l *allocations.List) {
	s.noteGone(k.Key, l)
	if l.Count() == 0 {
		s.Drop(k)
		return
	}
	k.Relink = true
	s.Touched(k)
}

// releaseListed gives up to most allocations of a list that have ended back to a limiter, and removes them.
func (s *Store) releaseListed(e Entry, l *allocations.List, most int) {
	for ; most > 0 && l.SoonestNs() <= s.NowNs; most-- {
		x := l.Soonest()
		a, given := allocationFrom(x), arith.Uint128{}
		if !a.keep {
			given = s.releaseAllocation(e, &a, a.units, a.endsNs)
		}
		l.Remove(x.Seq, given)
	}
}

// addListed is AddAllocation for a list.
func (s *Store) addListed(c, k *Cell, l *allocations.List, id []byte, now *allocation) bool {
	units := now.lease(now.units)
	newest, n := l.Newest(id)
	if n > 0 && newest.Mark == s.markBefore(c, now.units) {
		l.Grow(newest.Seq, units, now.mark)
		s.storeList(k, l)
		return true
	}
	if l.Full() && s.memory.closed() {
		return false
	}
	if n >= maxParts {
		own := slices.Collect(l.Of(id))
		l.Remove(own[n-1].Seq, arith.Uint128{})
	}
	l.Add(allocations.Allocation{EndsNs: now.endsNs, Units: units, Mark: now.mark, ID: id})
	s.storeList(k, l)
	return true
}

// completeListed is CompleteAllocations for a list.
func (s *Store) completeListed(c, k *Cell, l *allocations.List, id []byte, units int64) {
	own := slices.Collect(l.Of(id))
	for _, x := range own { // the newest first
		a := allocationFrom(x)
		back := min(units, a.units)
		units -= back
		l.Remove(x.Seq, s.releaseAllocation(c.Entry, &a, back, s.NowNs))
	}
	if len(own) > 0 {
		s.storeList(k, l)
		s.Reduced(c)
	}
}

// useListed is UseAllocations for a list.
func (s *Store) useListed(k *Cell, l *allocations.List, id []byte, unused int64) {
	own := slices.Collect(l.Of(id))
	used := -unused
	for _, x := range own {
		used += allocationFrom(x).units
	}
	for _, x := range slices.Backward(own) {
		a := allocationFrom(x)
		if used < a.units {
			l.SetUnits(x.Seq, a.lease(a.units-max(used, 0)))
			break
		}
		used -= a.units
		l.Remove(x.Seq, arith.Uint128{})
	}
	s.storeList(k, l)
}

// allocationsFrom converts allocations of a list.
func allocationsFrom(all iter.Seq[allocations.Allocation]) (list []allocation) {
	for x := range all {
		list = append(list, allocationFrom(x))
	}
	return list
}

// allAllocations lists the allocations of an entry in the order in which their units were taken.
func (s *Store) allAllocations(e Entry) []allocation {
	if l := s.listOf(e); l != nil {
		return allocationsFrom(l.From(0))
	}
	set := leases.Read(e.State())
	return s.inOrder(s.allocationsIn(&set))
}

// endedOf lists the allocations of an entry that have ended at a time, in the order in which their units were taken.
func (s *Store) endedOf(e Entry, atNs int64) []allocation {
	if l := s.listOf(e); l != nil {
		return allocationsFrom(l.Ended(atNs))
	}
	return slices.DeleteFunc(s.allAllocations(e), func(x allocation) bool { return x.endsNs > atNs })
}

// shifts are the amounts by which marks moved: a Fenwick tree over allocations in the order of taking.
type shifts []arith.Uint128

// add moves the marks after a position.
func (f shifts) add(at int, by arith.Uint128) {
	for at += 2; at < len(f); at += at & -at {
		f[at] = f[at].Add(by)
	}
}

// at returns how far the mark at a position moved.
func (f shifts) at(at int) (sum arith.Uint128) {
	for at++; at > 0; at &= at - 1 {
		sum = sum.Add(f[at])
	}
	return sum
}

// releaseEnded gives ended allocations back to a limiter, in the order of their ends. list is in the order of taking.
// It returns the allocations that have not ended, with their new marks.
func (s *Store) releaseEnded(e Entry, list []allocation) (rest []allocation) {
	moved, order := make(shifts, len(list)+1), make([]int, 0, len(list))
	for i := range list {
		if list[i].endsNs <= s.NowNs {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(list[a].endsNs, list[b].endsNs) })
	for _, i := range order {
		if x := &list[i]; !x.keep {
			x.mark = x.mark.SubFloor(moved.at(i))
			moved.add(i, s.releaseAllocation(e, x, x.units, x.endsNs))
		}
	}
	for i := range list {
		if x := list[i]; x.endsNs > s.NowNs {
			x.mark = x.mark.SubFloor(moved.at(i))
			rest = append(rest, x)
		}
	}
	return rest
}

// appendList appends the stored form of the entry of a list: no lease, as of a set, and what is beside the blocks.
func appendList(b []byte, l *allocations.List) []byte {
	base, last := l.Head()
	b = le.AppendUint64(le.AppendUint64(append(b, 0), base.Hi), base.Lo)
	return binary.AppendVarint(b, int64(last))
}

// loadList loads what appendList stored, without the first byte.
func (s *Store) loadList(e Entry, d *codec.Decoder) {
	l := s.listOf(e)
	if l == nil {
		l = s.makeList(e)
	}
	base, last := d.Bytes(16), d.Within(1, rule.MaxUnits)
	if !d.Bad {
		l.SetHead(arith.Uint128{Hi: le.Uint64(base), Lo: le.Uint64(base[8:])}, uint64(last))
	}
}

// blockWork is how many entries take as long to encode as a block of a list.
const blockWork = 4

// drainBlocks adds changed blocks of a list to a batch, as many as n entries are worth, at least one. It returns n less
// their worth. If blocks are left, the entry stays marked as changed.
func (s *Store) drainBlocks(b *Batch, e Entry, r arena.Ref, n int) int {
	l := s.listOf(e)
	if l == nil {
		return n
	}
	l.Drain(max(n/blockWork, 1), func(number uint64, value func([]byte) []byte) {
		b.Add(AllocationBlocks, string(le.AppendUint64(slices.Clone(e.Key()), number)), value)
		n -= blockWork
	})
	if l.Dirty() {
		s.Changed(r)
	}
	return n
}

// SplitBlockKey returns the limiter's name and the number in the key of a stored block.
func SplitBlockKey(key []byte) (name []byte, number uint64, ok bool) {
	at := len(key) - numberLen
	if at <= 0 {
		return nil, 0, false
	}
	return key[:at], le.Uint64(key[at:]), true
}

// LoadBlock loads a stored block of the list of a limiter. The entry of the list may be loaded later.
func (s *Store) LoadBlock(c *Cell, number uint64, value []byte) error {
	k := Cell{Hash: c.Hash, Key: c.Key, Space: Allocations}
	if s.Open(&k); k.Ref == 0 {
		s.create(&k, kindAllocations, leases.StateLen)
		s.makeList(k.Entry)
		s.Wheel.link(&s.Slab, k.Ref, s.IdleAtNs(k.Entry))
	}
	l := s.listOf(k.Entry)
	if l == nil || l.Load(number, value) != nil {
		return ErrStored
	}
	s.Wheel.unlink(&s.Slab, k.Ref)
	s.Wheel.link(&s.Slab, k.Ref, s.IdleAtNs(k.Entry))
	return nil
}

// UnloadBlock removes a block that was loaded, if it is there.
func (s *Store) UnloadBlock(c *Cell, number uint64) {
	k := Cell{Hash: c.Hash, Key: c.Key, Space: Allocations}
	if s.Open(&k); k.Ref != 0 {
		if l := s.listOf(k.Entry); l != nil {
			l.Unload(number)
		}
	}
}
