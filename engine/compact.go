package engine

import (
	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/engine/internal/leases"
	"github.com/weir-project/weir/engine/internal/script"
	"github.com/weir-project/weir/engine/internal/unitlog"
)

// Compaction moves the slots of sparse pages into free slots of other pages of their class,
// until whole pages are free for any class. Who refers to a slot of an entry or of a chain is
// found by a walk over the index, some segments at a time. Nothing that is moved changes.
type compaction struct {
	running bool
	at      uint64 // the hash from which on the walk goes on
	pages   []uint32
}

const (
	// compactStep is how many segments one step walks over: some thousand entries, which
	// takes tens of microseconds.
	compactStep = 8
	// compactDen is the part of a shard's pages that a walk must free to be worth it,
	// unless nothing else is left to do.
	compactDen = 32
)

// planCompaction chooses the pages to be emptied: of each class as many as the free slots of
// the others take the content of. It reports false when they are fewer than some.
func (s *shard) planCompaction(least int) bool {
	if s.slab.SurplusPages() < least {
		return false
	}
	s.compaction = compaction{running: true, pages: s.compaction.pages[:0]}
	for class := range uint8(arena.NumClasses) {
		if n := s.slab.Surplus(class); n > 0 {
			s.compaction.pages = s.slab.Vacate(class, n, s.compaction.pages)
		}
	}
	return true
}

// worthCompaction is how many pages a walk must free to be worth it.
func (s *shard) worthCompaction() int { return max(1, s.slab.PageCount()/compactDen) }

// compactSome walks over some segments of the index and moves what stands on the pages to be
// emptied.
func (s *shard) compactSome() {
	c := &s.compaction
	chains := s.hasChains()
	for range compactStep {
		g := s.index.segmentOf(c.at)
		g.eachRef(func(r *arena.Ref) { s.compactEntry(r, chains) })
		if c.at = g.following(c.at); c.at == 0 {
			s.endCompaction()
			return
		}
	}
}

// endCompaction gives the pages that could not be emptied back to their class.
func (s *shard) endCompaction() {
	s.slab.KeepPages(s.compaction.pages)
	s.compaction.running = false
}

// hasChains reports whether there may be entries with blocks.
func (s *shard) hasChains() bool {
	n := &s.counts.entries
	return n[SlidingLog]+n[Strike]+n[Concurrency]+n[kindClaims]+n[Scripted] > 0
}

// compactEntry moves an entry and its blocks away from pages to be emptied.
func (s *shard) compactEntry(at *arena.Ref, chains bool) {
	if s.slab.Leaving(*at) {
		if to := s.slab.MoveSlot(*at); to != 0 {
			s.relink(*at, to)
			*at = to
		}
	}
	if !chains {
		return
	}
	e := entry(s.slab.At(*at))
	if st := logState(e); st != nil {
		log := unitlog.Read(st)
		log.MoveBlocks(&s.slab)
		log.Write(st)
		return
	}
	switch e.kind() {
	case uint8(Concurrency), kindClaims:
		set := leases.Read(e.state())
		set.MoveBlocks(&s.slab)
		set.Write(e.state())
	case uint8(Scripted):
		script.MoveBlocks(e.state(), &s.slab)
	}
}

// relink makes the wheel and the marks of changes mean an entry's new slot, and frees the old.
func (s *shard) relink(from, to arena.Ref) {
	s.wheel.moved(&s.slab, to)
	if s.slab.IsDirty(from) {
		s.changed(to)
	}
	s.slab.Free(from)
}
