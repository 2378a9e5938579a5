package store

import (
	"slices"

	"github.com/weir-project/weir/engine/internal/leases"
)

// The functions of this file read the allocations of a limiter that is up to date.

// AllocationsOf returns how many allocations a limiter has.
func (s *Store) AllocationsOf(c *Cell) int {
	k := s.OpenAllocations(c)
	if k.Ref == 0 {
		return 0
	}
	if l := s.listOf(k.Entry); l != nil {
		return l.Count()
	}
	return int(leases.Read(k.Entry.State()).Count)
}

// HoldsOn returns how many holds have valid allocations in a limiter that have not ended, and the bytes of all
// allocations.
func (s *Store) HoldsOn(c *Cell) (holds, bytes int) {
	k := s.OpenAllocations(c)
	if k.Ref == 0 || StaleAllocations(c, &k) {
		return 0, 0
	}
	bytes = s.Slab.Len(k.Ref) + IndexBytes
	ids := map[string]struct{}{}
	l := s.listOf(k.Entry)
	if l != nil {
		for x := range l.Ended(s.NowNs) {
			ids[string(x.ID)] = struct{}{}
		}
		return l.Holds() - len(ids), bytes + int(l.Bytes())
	}
	set := leases.Read(k.Entry.State())
	bytes += set.Bytes(&s.Slab)
	set.Hide(&s.Slab, s.NowNs)
	for _, x := range s.allocationsIn(&set) {
		ids[string(x.id)] = struct{}{}
	}
	return len(ids), bytes
}

// HoldsFrom calls visit with the holds that have allocations in a limiter which have not ended, beginning with a number
// of an allocation. It looks at up to count allocations of a list, and returns how many it looked at and the number to
// go on with, or 0 at the end. A set has no numbers: visit gets all of its few holds.
func (s *Store) HoldsFrom(c *Cell, from uint64, count int, visit func(id []byte)) (looked int, next uint64) {
	k := s.OpenAllocations(c)
	if k.Ref == 0 || StaleAllocations(c, &k) {
		return 0, 0
	}
	l := s.listOf(k.Entry)
	if l == nil {
		seen := map[string]struct{}{}
		for _, x := range s.allAllocations(k.Entry) {
			if _, twice := seen[string(x.id)]; !twice && x.endsNs > s.NowNs {
				seen[string(x.id)] = struct{}{}
				visit(x.id)
			}
		}
		return len(seen), 0
	}
	for x := range l.From(from) {
		if looked == count {
			return looked, x.Seq
		}
		looked++
		if newest, _ := l.Newest(x.ID); newest.Seq == x.Seq && x.EndsNs > s.NowNs {
			visit(x.ID)
		}
	}
	return looked, 0
}

// HasAllocation reports whether a hold has an allocation in a limiter which has not ended.
func (s *Store) HasAllocation(c *Cell, id []byte) bool {
	k := s.OpenAllocations(c)
	if k.Ref == 0 || StaleAllocations(c, &k) {
		return false
	}
	if l := s.listOf(k.Entry); l != nil {
		x, n := l.Newest(id)
		return n > 0 && x.EndsNs > s.NowNs
	}
	set := leases.Read(k.Entry.State())
	return slices.ContainsFunc(s.allocationsOf(&set, id), func(x allocation) bool { return x.endsNs > s.NowNs })
}
