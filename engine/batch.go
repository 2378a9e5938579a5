package engine

import (
	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/engine/internal/store"
	"github.com/weir-project/weir/engine/internal/unitlog"
)

// shardBatch is a part of a batch, sorted by shard. A table larger than the processor's
// caches is as slow as memory: the address of the next entry is known only when the
// operation before it is done. A shard batch prefetches the entries of all operations on
// one shard side by side, under one lock instead of several.
type shardBatch struct {
	hash [batchOps]uint64
	next [batchOps]uint8 // the next operation in the same lane
	in   [batchOps]*shard
	// lanes are chains of operations, the first and the last of each. Those of one shard
	// are in one lane, in their order; a lane may hold those of several shards.
	first, last [batchLanes]uint8
}

const (
	// batchOps is how many operations are sorted together. The entries of more operations
	// would evict each other from the nearest cache before they are used.
	batchOps   = 128
	batchLanes = 64
	noOp       = batchOps // behind the last operation of a lane
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

// prefetch has the processor load what operation i and those behind it on the same shard
// will find. It waits for nothing: no load depends on one for another operation.
func (r *shardBatch) prefetch(s *shard, i uint8, ops []Op) {
	logs := false
	for i := i; i != noOp && r.in[i] == s; i = r.next[i] {
		if ops[i].Code == OpCheck {
			s.prefetchCheck(r.hash[i], ops[i].Text)
			continue
		}
		s.fetched += s.Index.Prefetch(r.hash[i], &s.Slab)
		logs = logs || store.HasLog(uint8(ops[i].Limit.Algorithm))
	}
	for ; logs && i != noOp && r.in[i] == s; i = r.next[i] {
		if store.HasLog(uint8(ops[i].Limit.Algorithm)) {
			s.fetched += prefetchLog(&s.Index, r.hash[i], &s.Slab)
		}
	}
}

// prefetchLog reads the ends of the log that find will find, where most of what an operation
// does to it is done.
func prefetchLog(x *store.Index, h uint64, s *arena.Slab) uint64 {
	r := x.First(h)
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

// lockCursor is the one shard that a caller has locked while it works through a batch.
type lockCursor struct {
	s   *shard
	ops int
}

// opsPerLock is how many operations in a row a caller may do under one lock. A batch has
// up to a thousand, of which the dearest (a long list of leases) take tens of
// microseconds each: without a bound one batch would delay every other connection.
const opsPerLock = 64

// enter locks a shard and reports true, unless it is held already.
func (t *lockCursor) enter(s *shard) (locked bool) {
	if s.t.high() {
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

// leave unlocks the shard that is held, if one is. Callers defer it, so that a panic
// leaves no shard locked.
func (t *lockCursor) leave() {
	if t.s != nil {
		t.s.unlock()
		t.s = nil
	}
}
