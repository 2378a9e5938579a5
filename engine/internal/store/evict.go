package store

import (
	"math/bits"

	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/rule"
)

// evictMost bounds the entries evicted for one slot or limit. evictLook is the number of entries in the sample
// from which each victim is chosen. evictTries bounds the segments from which a sample is taken, and evictReads the
// entries that it reads.
const (
	evictMost  = 16
	evictLook  = 16
	evictTries = 32
	evictReads = 2048
)

// AdmitBytes reports whether a slot of n bytes may be allocated; n is 0 if no slot is needed. If memory is nearly
// full, it first evicts entries with at least n bytes together, but never keep. It is called just before the
// allocation, so an operation that adds nothing evicts nothing.
func (s *Store) AdmitBytes(n int, keep arena.Ref) bool {
	if n == 0 || s.Slab.HasSlot(n) {
		return true
	}
	if s.mustEvict() {
		before := s.Slab.UsedBytes()
		for range evictMost {
			enough := before-s.Slab.UsedBytes() >= int64(n) && !s.memory.closed()
			if enough || !s.evict(keep) || s.Slab.HasSlot(n) {
				break
			}
		}
	}
	return s.Slab.HasSlot(n) || !s.memory.closed()
}

// mustEvict reports whether adding an entry must evict others from this shard. A shard with less than its share
// of the memory evicts nothing, because reclaim takes memory from the largest shard.
func (s *Store) mustEvict() bool {
	l := &s.memory.levels
	return !s.keepsAll && s.memory.full == LeastHarm && s.memory.used.Load() >= l.soft && s.Used.Bytes() >= l.share
}

// AdmitLimit reports whether an entry may use a limit. At the bound it first evicts a few entries, but not
// keep. Some of them may be the last users of their limits.
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

// evict drops the victim of a sample: the entry nearest to idle, whose loss forgives the least. keep is not in
// the sample. With a chance of 88 %, the victim of sixteen entries is among the eighth of all entries that is
// nearest to idle.
func (s *Store) evict(keep arena.Ref) bool {
	victim := s.NearestIdle(keep)
	if victim == 0 {
		return false
	}
	s.EachCell(victim, s.GiveUp)
	return true
}

// GiveUp drops a cell's entry to free memory. If the entry was not idle, it counts as evicted, and its units as
// forgiven. A counter below zero has no units to forgive.
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

// worthNs orders entries by the harm of losing them: an entry that becomes idle later has more units to forgive.
// The remembered answer of a denied decision is evicted before all other entries. Without that answer, a late
// copy of the request may take units, but the limit still holds. So a flood of denied requests with IDs evicts no
// limiter.
func (s *Store) worthNs(e Entry) int64 {
	if e.Kind() == KindToken {
		if a := readAnswer(e.State()); a.denied() {
			return 0
		}
	}
	return s.IdleAtNs(e)
}

// evictable reports whether the entry in a slot may be evicted. Blocks, holds, and limiters from which holds took units
// are never evicted, because clients rely on them.
func (s *Store) evictable(r arena.Ref, e Entry) bool {
	switch kind := e.Kind(); {
	case kind == KindToken:
		return true
	case kind == KindBlock || kind > KindToken && kind != kindBundle:
		return false
	case !s.HasAllocations():
		return true
	}
	held := false
	s.EachCell(r, func(c *Cell) {
		k := s.OpenAllocations(c)
		held = held || k.Ref != 0
	})
	return !held
}

// hasEvictable reports whether the store has more limiters and remembered answers than sets of allocations. It reads
// counters only, so a shard that is full of holds is not searched. It also reports true if the only limiters without
// allocations share bundles with others. Until they are collected, allocations whose limiter is gone count for another.
func (s *Store) hasEvictable() bool {
	n := s.Counts.Entries[KindToken] - s.Counts.Entries[kindAllocations]
	for a := range rule.NumAlgorithms {
		n += s.Counts.Entries[a]
	}
	return n > 0
}

// NearestIdle returns the entry of a sample that is worth the least, or 0 if the sample has no evictable entry
// other than keep.
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

// visitFew visits a random sample of evictable entries. Start and stride of the sample are random, so that an
// entry does not always compete with the same neighbours.
//
// visitFew samples the denser of two segments (the power of two choices, Mitzenmacher, 1996). Otherwise the
// sizes of segments would drift apart, and the smallest segment would have only valuable entries.
func (s *Store) visitFew(visit func(arena.Ref, Entry)) {
	if !s.hasEvictable() {
		return
	}
	seen, reads := 0, 0
	for range evictTries {
		s.evictSeed = s.evictSeed*6364136223846793005 + 1442695040888963407 // Knuth's MMIX generator
		g, from := s.Index.denserOf(s.evictSeed, bits.RotateLeft64(s.evictSeed, 24)), int(s.evictSeed>>20%segmentSlots)
		stride := strideFrom(int(s.evictSeed >> 29 % segmentSlots))
		for i := 0; i < segmentSlots && seen < evictLook && reads < evictReads; i++ {
			r := g.slot((from + i*stride) % segmentSlots)
			if r == 0 {
				continue
			}
			reads++
			if e := Entry(s.Slab.At(r)); s.evictable(r, e) {
				seen++
				visit(r, e)
			}
		}
		if seen == evictLook || reads == evictReads {
			break
		}
	}
	s.inVain += int64(reads - seen)
}

// strideFrom returns the first number from n on that has no divisor in common with segmentSlots, which is 16 * 3 * 17.
// A walk with this stride reaches every slot.
func strideFrom(n int) int {
	for n |= 1; n%3 == 0 || n%17 == 0; {
		n += 2
	}
	return n
}
