package engine

import (
	"cmp"
	"slices"
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
	if s.slab.surplusPages() < least {
		return false
	}
	s.compaction = compaction{running: true, pages: s.compaction.pages[:0]}
	for class := range s.slab.count {
		if n := s.slab.surplus(uint8(class)); n > 0 {
			s.compaction.pages = s.slab.vacate(uint8(class), n, s.compaction.pages)
		}
	}
	return true
}

// worthCompaction is how many pages a walk must free to be worth it.
func (s *slab) worthCompaction() int { return max(1, (len(s.pages)-len(s.vacant))/compactDen) }

// surplusPages is how many pages the free slots of all classes make.
func (s *slab) surplusPages() (n int) {
	for class := range s.count {
		n += s.surplus(uint8(class))
	}
	return n
}

// surplus is how many pages the free slots of a class make.
func (s *slab) surplus(class uint8) int {
	perPage := pageLen / int(slotLens[class])
	return s.count[class] - (s.live[class]+perPage-1)/perPage
}

// lacks is how many more free slots of a class make so many pages.
func (s *slab) lacks(class uint8, pages int) int {
	perPage := pageLen / int(slotLens[class])
	return max(s.live[class]-(s.count[class]-pages)*perPage, 0)
}

// vacate takes the n emptiest pages of a class out of the list of pages with room, and adds
// their numbers to a list.
func (s *slab) vacate(class uint8, n int, list []uint32) []uint32 {
	from := len(list)
	for id := s.room[class]; id != 0; id = s.pages[id].next {
		list = append(list, id)
	}
	slices.SortFunc(list[from:], func(a, b uint32) int { return cmp.Compare(s.pages[a].live, s.pages[b].live) })
	list = list[:min(from+n, len(list))]
	for _, id := range list[from:] {
		p := s.pages[id]
		s.unlist(id, p)
		p.leaves = true
	}
	return list
}

// compactSome walks over some segments of the index and moves what stands on the pages to be
// emptied.
func (s *shard) compactSome() {
	c := &s.compaction
	chains := s.hasChains()
	for range compactStep {
		g := s.index.segmentOf(c.at)
		for i := range g.groups {
			of := &g.groups[i]
			for slot, tag := range of.ctrl {
				if tag < slotEmpty {
					s.compactEntry(of, slot, chains)
				}
			}
		}
		if c.at = nextSegment(c.at, g); c.at == 0 {
			s.endCompaction()
			return
		}
	}
}

// nextSegment is the first hash behind the segment of a hash; 0 behind the last.
func nextSegment(h uint64, g *segment) uint64 {
	if g.depth == 0 {
		return 0
	}
	span := uint64(1) << (64 - g.depth)
	return h&^(span-1) + span
}

// endCompaction gives the pages that could not be emptied back to their class.
func (s *shard) endCompaction() {
	for _, id := range s.compaction.pages {
		if p := s.slab.pages[id]; p != nil && p.leaves {
			p.leaves = false
			s.slab.list(id, p)
		}
	}
	s.compaction.running = false
}

// hasChains reports whether there may be entries with blocks.
func (s *shard) hasChains() bool {
	n := &s.counts.entries
	return n[SlidingLog]+n[Strike]+n[Concurrency]+n[kindClaims]+n[Scripted] > 0
}

// compactEntry moves an entry and its blocks away from pages to be emptied.
func (s *shard) compactEntry(of *slotGroup, slot int, chains bool) {
	r := of.refs[slot]
	if s.slab.pages[r>>wordBits].leaves {
		if to := s.slab.moveSlot(r); to != 0 {
			s.relink(r, to)
			of.refs[slot], r = to, to
		}
	}
	if !chains {
		return
	}
	e := entry(s.slab.at(r))
	if st := e.logState(); st != nil {
		if log := readLog(st); log.head != 0 {
			log.head, log.tail = s.slab.moveChain(log.head)
			log.write(st)
		}
		return
	}
	switch e.kind() {
	case uint8(Concurrency), kindClaims:
		set := readLeases(e.state())
		if set.head != 0 {
			set.head, _ = s.slab.moveChain(set.head)
			set.write(e.state())
		}
	case uint8(Scripted):
		if x := readText(e.state()); isText(e.state()) && x.head != 0 {
			x.head, _ = s.slab.moveChain(x.head)
			writeText(e.state(), x)
		}
	}
}

// relink makes the wheel and the marks of changes mean an entry's new slot, and frees the old.
func (s *shard) relink(from, to ref) {
	e := entry(s.slab.at(to))
	if next := e.next(); next != 0 {
		entry(s.slab.at(next)).setPrev(to)
	}
	if prev := e.prev(); prev < headMark {
		entry(s.slab.at(prev)).setNext(to)
	} else {
		*s.wheel.head(placeMarked(prev)) = to
	}
	if s.slab.pages[from>>wordBits].hasMark(uint16(from & (1<<wordBits - 1))) {
		s.changed(to)
	}
	s.slab.free(from)
}

// moveSlot copies a slot to a free one of its class and returns that; 0 when there is none.
func (s *slab) moveSlot(from ref) (to ref) {
	n := s.len(from)
	if s.room[classOf(n)] == 0 { // taken since the plan was made
		return 0
	}
	to = s.alloc(n)
	copy(s.slot(to), s.slot(from))
	return to
}

// moveChain moves the blocks of a chain away from pages to be emptied, and returns its ends.
// Blocks of all kinds begin with the reference to the next.
func (s *slab) moveChain(first ref) (head, tail ref) {
	head = first
	for r := first; r != 0; {
		if s.pages[r>>wordBits].leaves {
			if to := s.moveSlot(r); to != 0 {
				s.free(r)
				if r = to; tail == 0 {
					head = to
				} else {
					le.PutUint32(s.at(tail), to)
				}
			}
		}
		tail, r = r, le.Uint32(s.at(r))
	}
	return head, tail
}
