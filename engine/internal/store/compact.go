package store

import (
	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/engine/internal/leases"
	"github.com/weir-project/weir/engine/internal/rule"
	"github.com/weir-project/weir/engine/internal/script"
	"github.com/weir-project/weir/engine/internal/unitlog"
)

// compaction moves the slots of sparse pages into free slots of other pages of their class. The sparse pages become
// empty, and any class can use them. A walk over the index, some segments at a time, finds the references to
// slots. Moving changes no entry.
type compaction struct {
	running bool
	at      uint64 // the hash at which the walk continues
	pages   []uint32
}

const (
	// compactStep is how many segments one step visits: some thousand entries, which takes tens of microseconds.
	compactStep = 8
	// compactDen determines when a walk is worthwhile: it must free at least one in compactDen of a shard's pages.
	// A walk that frees fewer pages runs only if nothing else is left to do.
	compactDen = 32
)

// planCompaction selects the pages to empty: the emptiest pages of each class, as long as their entries fit the free
// slots of its other pages. It returns false, and selects none, if fewer than least pages would become free.
func (s *Store) planCompaction(least int) bool {
	if s.Slab.SurplusPages() < least {
		return false
	}
	s.compaction = compaction{running: true, pages: s.compaction.pages[:0]}
	for class := range uint8(arena.NumClasses) {
		if n := s.Slab.Surplus(class); n > 0 {
			s.compaction.pages = s.Slab.Vacate(class, n, s.compaction.pages)
		}
	}
	return true
}

// worthCompaction returns how many pages a walk must free to be worthwhile.
func (s *Store) worthCompaction() int { return max(1, s.Slab.PageCount()/compactDen) }

// compactSome visits some segments of the index and moves the slots on the pages to empty.
func (s *Store) compactSome() {
	c := &s.compaction
	chains := s.hasChains()
	for range compactStep {
		g := s.Index.SegmentOf(c.at)
		g.eachRef(func(r *arena.Ref) { s.compactEntry(r, chains) })
		if c.at = g.following(c.at); c.at == 0 {
			s.endCompaction()
			return
		}
	}
}

// endCompaction returns the pages that could not be emptied to their class.
func (s *Store) endCompaction() {
	s.Slab.KeepPages(s.compaction.pages)
	s.compaction.running = false
}

// hasChains reports whether entries with blocks may exist, and hasChainsToShed whether such entries exist that may be
// evicted.
func (s *Store) hasChains() bool { return s.HasAllocations() || s.hasChainsToShed() }

func (s *Store) hasChainsToShed() bool {
	n := &s.Counts.Entries
	return n[rule.SlidingLog]+n[rule.Strike]+n[rule.Concurrency]+n[rule.Scripted] > 0
}

// compactEntry moves an entry and its blocks off the pages to empty.
func (s *Store) compactEntry(at *arena.Ref, chains bool) {
	if s.Slab.BeingEmptied(*at) {
		if to := s.Slab.MoveSlot(*at); to != 0 {
			s.relink(*at, to)
			*at = to
		}
	}
	if !chains {
		return
	}
	e := Entry(s.Slab.At(*at))
	if st := logState(e); st != nil {
		log := unitlog.Read(st)
		log.MoveBlocks(&s.Slab)
		log.Write(st)
		return
	}
	switch kind := e.Kind(); {
	case kind == uint8(rule.Concurrency), kind == kindAllocations && s.listOf(e) == nil:
		set := leases.Read(e.State())
		set.MoveBlocks(&s.Slab)
		set.Write(e.State())
	case kind == uint8(rule.Scripted):
		script.MoveBlocks(e.State(), &s.Slab)
	}
}

// relink makes the wheel and the dirty bits refer to an entry's new slot, and frees the old slot.
func (s *Store) relink(from, to arena.Ref) {
	s.Wheel.moved(&s.Slab, to)
	if s.Slab.IsDirty(from) {
		s.Changed(to)
	}
	s.Slab.Free(from)
}

// ReclaimSome makes one reclaim step in a shard. It returns false if no step can free memory.
func (s *Store) ReclaimSome() bool {
	switch {
	case s.Slab.ReturnSpare():
		return true
	case s.compaction.running, s.planCompaction(s.worthCompaction()):
		s.compactSome()
		return true
	case s.memory.full == LeastHarm:
		return s.shedSome() || s.planCompaction(1)
	}
	return s.memory.Urgent() && s.planCompaction(1)
}
