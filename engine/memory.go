package engine

import (
	"math/bits"

	"github.com/weir-project/weir/engine/internal/arena"
)

// evictMost bounds the entries evicted for one slot or limit, evictLook the
// entries among which each is chosen, evictTries the segments looked at for one.
const (
	evictMost  = 16
	evictLook  = 16
	evictTries = 32
)

// makeRoom reports whether a slot of n bytes may be taken; none is needed if n is 0.
// When memory is nearly full it first evicts entries that take as much, but not keep. It is
// asked just before the slot is taken: an operation that adds nothing evicts nothing.
func (s *shard) makeRoom(n int, keep arena.Ref) bool {
	if n == 0 || s.slab.HasSlot(n) {
		return true
	}
	if s.evicts() {
		taken := s.slab.TakenBytes()
		for range evictMost {
			enough := taken-s.slab.TakenBytes() >= int64(n) && !s.t.closed()
			if enough || !s.evict(keep) || s.slab.HasSlot(n) {
				break
			}
		}
	}
	return s.slab.HasSlot(n) || !s.t.closed()
}

// evicts reports whether an entry that the shard adds costs it others. A shard that has less
// than its share of the memory in use leaves that to reclaim, which takes from the largest.
func (s *shard) evicts() bool {
	l := &s.t.levels
	return s.t.opts.WhenFull == LeastHarm && s.t.used.Load() >= l.soft && s.used.Bytes() >= l.share
}

// makeRoomForLimit reports whether an entry may remember a limit. At the bound it
// first evicts a few entries, but not keep, some of which may be the last to
// remember theirs.
func (s *shard) makeRoomForLimit(l *Limit, keep arena.Ref) bool {
	for range evictMost {
		if s.mayRemember(l) {
			return true
		}
		if s.t.opts.WhenFull != LeastHarm || !s.evict(keep) {
			return false
		}
	}
	return s.mayRemember(l)
}

// mayRemember reports whether a limit is in use already or may be added.
func (s *shard) mayRemember(l *Limit) bool { return !s.t.closed() || s.limits.has(l) }

// evict drops the entry nearest to idle of a few: the one whose loss forgives the
// least. keep is not among them. (An order of all entries by that time would cost
// more than it is worth: of sixteen, the one to go is among the nearest eighth with
// a chance of 88 %, and an offender goes only if it meets fifteen worse ones.)
func (s *shard) evict(keep arena.Ref) bool {
	victim := s.nearestIdle(keep)
	if victim == 0 {
		return false
	}
	c := s.cellOf(victim)
	s.giveUp(&c)
	return true
}

// giveUp drops a cell's entry for room. If it was not idle it counts as evicted and
// its units as forgiven; a counter below zero has none.
func (s *shard) giveUp(c *cell) {
	if s.idle(c.e) {
		s.counts.expired++
	} else {
		s.counts.evicted++
		s.counts.forgiven += max(s.usedUnits(c.e), 0)
	}
	s.t.evicted.Add(1)
	s.drop(c)
}

// worthNs orders entries by the harm of losing them: what is idle later has more to
// forgive. The remembered answer of a denied decision comes before all of them: without
// it a late copy of the request may take units, which admits nobody too many. So a
// flood of denied requests that carry IDs costs no limiter its place.
func (s *shard) worthNs(e entry) int64 {
	if e.kind() == kindToken {
		if d, _ := readToken(e.state()); d.denied() {
			return 0
		}
	}
	return s.idleAtNs(e)
}

// denied reports whether a decision was asked for and denied. Nothing else that answers
// 0 names a limit.
func (d *Decision) denied() bool { return d.Status == OK && d.Allowed == 0 && d.Limit > 0 }

// evictable reports whether an entry may be given up for room: a block is an order, and a
// hold a promise.
func evictable(e entry) bool { return e.kind() != kindBlock && e.kind() <= kindToken }

// nearestIdle is the one of a few entries that is worth the least; 0 when none that may go but
// keep was met.
func (s *shard) nearestIdle(keep arena.Ref) (nearest arena.Ref) {
	soonest := Never
	s.visitFew(func(r arena.Ref, e entry) {
		if r == keep {
			return
		}
		if worthNs := s.worthNs(e); nearest == 0 || worthNs < soonest {
			nearest, soonest = r, worthNs
		}
	})
	return nearest
}

// visitFew visits a few entries that may go, from a place that wanders over the index. The steps
// it goes by change as well: among neighbours those that are worth little would go first
// where they are few, until places are left that hold none, and a limiter goes there. For the
// same reason it takes the denser of two segments (the power of two choices, Mitzenmacher, 1996):
// evictions from all segments alike would let the number of entries in each wander, and at the
// bottom of that a segment holds only what is worth much.
func (s *shard) visitFew(visit func(arena.Ref, entry)) {
	seen := 0
	for range evictTries {
		s.wander = s.wander*6364136223846793005 + 1442695040888963407 // Knuth's MMIX generator
		g, from := s.index.denserOf(s.wander, bits.RotateLeft64(s.wander, 24)), int(s.wander>>20%segmentSlots)
		stride := int(s.wander>>29%segmentSlots) | 1 // odd: it meets every slot
		for i := 0; i < segmentSlots && seen < evictLook; i++ {
			r := g.slot((from + i*stride) % segmentSlots)
			if r == 0 {
				continue
			}
			if e := entry(s.slab.At(r)); evictable(e) {
				seen++
				visit(r, e)
			}
		}
		if seen == evictLook {
			break
		}
	}
}
