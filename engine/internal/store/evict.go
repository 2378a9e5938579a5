package store

import (
	"math/bits"

	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/rule"
)

// evictMost bounds the entries evicted for one slot or limit, evictLook the
// entries among which each is chosen, evictTries the segments looked at for one.
const (
	evictMost  = 16
	evictLook  = 16
	evictTries = 32
)

// AdmitBytes reports whether a slot of n bytes may be taken; none is needed if n is 0.
// When memory is nearly full it first evicts entries that take as much, but not keep. It is
// asked just before the slot is taken: an operation that adds nothing evicts nothing.
func (s *Store) AdmitBytes(n int, keep arena.Ref) bool {
	if n == 0 || s.Slab.HasSlot(n) {
		return true
	}
	if s.mustEvict() {
		taken := s.Slab.TakenBytes()
		for range evictMost {
			enough := taken-s.Slab.TakenBytes() >= int64(n) && !s.memory.closed()
			if enough || !s.evict(keep) || s.Slab.HasSlot(n) {
				break
			}
		}
	}
	return s.Slab.HasSlot(n) || !s.memory.closed()
}

// mustEvict reports whether an entry that the shard adds costs it others. A shard that has less
// than its share of the memory in use leaves that to reclaim, which takes from the largest.
func (s *Store) mustEvict() bool {
	l := &s.memory.levels
	return s.memory.full == LeastHarm && s.memory.used.Load() >= l.soft && s.Used.Bytes() >= l.share
}

// AdmitLimit reports whether an entry may remember a limit. At the bound it
// first evicts a few entries, but not keep, some of which may be the last to
// remember theirs.
func (s *Store) AdmitLimit(l *rule.Limit, keep arena.Ref) bool {
	for range evictMost {
		if s.MayAddLimit(l) {
			return true
		}
		if s.memory.full != LeastHarm || !s.evict(keep) {
			return false
		}
	}
	return s.MayAddLimit(l)
}

// MayAddLimit reports whether a limit is in use already or may be added.
func (s *Store) MayAddLimit(l *rule.Limit) bool { return !s.memory.closed() || s.Limits.has(l) }

// evict drops the entry nearest to idle of a few: the one whose loss forgives the
// least. keep is not among them. (An order of all entries by that time would cost
// more than it is worth: of sixteen, the one to go is among the nearest eighth with
// a chance of 88 %, and an offender goes only if it meets fifteen worse ones.)
func (s *Store) evict(keep arena.Ref) bool {
	victim := s.NearestIdle(keep)
	if victim == 0 {
		return false
	}
	c := s.cellOf(victim)
	s.GiveUp(&c)
	return true
}

// GiveUp drops a cell's entry for room. If it was not idle it counts as evicted and
// its units as forgiven; a counter below zero has none.
func (s *Store) GiveUp(c *Cell) {
	if s.idle(c.Entry) {
		s.Counts.Expired++
	} else {
		s.Counts.Evicted++
		s.Counts.Forgiven += max(s.UsedUnits(c.Entry), 0)
	}
	s.memory.evicted.Add(1)
	s.Drop(c)
}

// worthNs orders entries by the harm of losing them: what is idle later has more to
// forgive. The remembered answer of a denied decision comes before all of them: without
// it a late copy of the request may take units, which admits nobody too many. So a
// flood of denied requests that carry IDs costs no limiter its place.
func (s *Store) worthNs(e Entry) int64 {
	if e.Kind() == KindToken {
		if a, _ := ReadToken(e.State()); a.denied() {
			return 0
		}
	}
	return s.IdleAtNs(e)
}

// evictable reports whether an entry may be given up for room: a block is an order, and a
// hold a promise.
func evictable(e Entry) bool { return e.Kind() != KindBlock && e.Kind() <= KindToken }

// NearestIdle is the one of a few entries that is worth the least; 0 when none that may go but
// keep was met.
func (s *Store) NearestIdle(keep arena.Ref) (nearest arena.Ref) {
	soonest := arith.Never
	s.visitFew(func(r arena.Ref, e Entry) {
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
func (s *Store) visitFew(visit func(arena.Ref, Entry)) {
	seen := 0
	for range evictTries {
		s.evictSeed = s.evictSeed*6364136223846793005 + 1442695040888963407 // Knuth's MMIX generator
		g, from := s.Index.denserOf(s.evictSeed, bits.RotateLeft64(s.evictSeed, 24)), int(s.evictSeed>>20%segmentSlots)
		stride := int(s.evictSeed>>29%segmentSlots) | 1 // odd: it meets every slot
		for i := 0; i < segmentSlots && seen < evictLook; i++ {
			r := g.slot((from + i*stride) % segmentSlots)
			if r == 0 {
				continue
			}
			if e := Entry(s.Slab.At(r)); evictable(e) {
				seen++
				visit(r, e)
			}
		}
		if seen == evictLook {
			break
		}
	}
}
