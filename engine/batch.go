package engine

import (
	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/engine/internal/store"
	"github.com/weir-project/weir/engine/internal/unitlog"
)

// shardBatch is a part of a batch, sorted by shard. A table that does not fit the processor's caches is bound
// by memory latency: the address of the next entry is known only after the operation before it. A shard batch
// prefetches the entries of all operations on one shard side by side, under one lock instead of several.
type shardBatch struct {
	hash [batchOps]uint64
	next [batchOps]uint8 // the next operation in the same lane
	in   [batchOps]*shard
	// lanes are chains of operations; first and last are the ends of each chain. All operations of one shard are
	// in one lane, in order. A lane may hold operations of several shards.
	first, last [batchLanes]uint8
}

const (
	// batchOps is how many operations are sorted together. The entries of more operations would evict each other
	// from the nearest cache before they are used.
	batchOps   = 128
	batchLanes = 64
	noOp       = batchOps // marks the end of a lane
)

// sort puts the operations into lanes.
func (r *shardBatch) sort(t *Table, ops []Op) {
	for i := range r.first {
		r.first[i] = noOp
	}
	for i := range ops {
		r.hash[i], r.in[i] = t.find(ops[i].Key)
		r.next[i] = noOp
		lane := r.in[i].number % batchLanes
		if r.first[lane] == noOp {
			r.first[lane] = uint8(i)
		} else {
			r.next[r.last[lane]] = uint8(i)
		}
		r.last[lane] = uint8(i)
	}
}

// prefetchAhead is how many groups of the index are loaded side by side. Sixteen gained no more.
const prefetchAhead = 8

// prefetch loads what operation i and later operations on the same shard need into the cache.
func (r *shardBatch) prefetch(s *shard, i uint8, ops []Op) {
	more := r.prefetchEntries(s, i, ops)
	for ; more && i != noOp && r.in[i] == s; i = r.next[i] {
		switch {
		case ops[i].Code == OpCheck:
			s.prefetchOthers(r.hash[i], &ops[i])
		case store.HasLog(uint8(ops[i].Limit.Algorithm)):
			s.fetched += prefetchLog(&s.Index, r.hash[i], &s.Slab)
		}
	}
}

// prefetchEntries loads the first entry of each operation, and reports whether one of them needs more. It first loads
// the groups of the index for several operations, and then their entries. A single loop over group and entry would
// overlap fewer loads, because the processor knows the address of an entry only once it has loaded the group.
func (r *shardBatch) prefetchEntries(s *shard, i uint8, ops []Op) (more bool) {
	sum := uint64(0)
	for i != noOp && r.in[i] == s {
		var groups [prefetchAhead]store.Group
		var bundleLens [prefetchAhead]int
		n := 0
		for ; n < prefetchAhead && i != noOp && r.in[i] == s; i = r.next[i] {
			h := r.hash[i]
			if ops[i].Code == OpCheck {
				var others []int
				h, bundleLens[n], others = s.firstOfCheck(h, &ops[i])
				more = more || len(others) > 0
			}
			more = more || store.HasLog(uint8(ops[i].Limit.Algorithm))
			groups[n] = s.Index.GroupOf(h)
			sum += groups[n].Read()
			n++
		}
		for k := range n {
			if e := groups[k].First(); e != 0 {
				sum += s.Slab.Prefetch(e) + s.Slab.PrefetchBehind(e, bundleLens[k])
			}
		}
	}
	s.fetched += sum
	return more
}

// prefetchLog reads both ends of the log that Index.find will return for a hash. Most operations on a log access
// only its ends.
func prefetchLog(x *store.Index, h uint64, s *arena.Slab) uint64 {
	r := x.GroupOf(h).First()
	if r == 0 {
		return 0
	}
	e := store.Entry(s.At(r))
	if !store.HasLog(e.Kind()) {
		return 0
	}
	log := unitlog.Read(e.State())
	return log.Prefetch(s)
}

// lockCursor is the shard that a caller holds locked while it works through a batch: at most one.
type lockCursor struct {
	s   *shard
	ops int // operations since s was locked
}

// opsPerLock is how many operations in a row a caller may carry out under one lock. A batch has up to a
// thousand operations, and the most expensive operations (a long list of leases) take tens of microseconds
// each. Without this bound one batch would delay all other connections.
const opsPerLock = 64

// enter locks a shard and returns true. It returns false if the cursor still holds the shard. While memory is
// high, it first makes a reclaim step, for which it unlocks the shard that it holds.
func (t *lockCursor) enter(s *shard) (locked bool) {
	if s.t.memory.High() {
		t.leave()
		s.t.reclaim(false)
	}
	t.ops++
	if s == t.s && t.ops <= opsPerLock {
		return false
	}
	t.leave()
	s.mu.Lock()
	t.s, t.ops = s, 1
	return true
}

// leave unlocks the shard that the cursor holds, if any. Callers defer it, so that a panic leaves no shard
// locked.
func (t *lockCursor) leave() {
	if t.s != nil {
		t.s.unlock()
		t.s = nil
	}
}
