package engine

import (
	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/engine/internal/store"
	"github.com/weir-project/weir/engine/internal/unitlog"
)

// round is a stretch of a batch put in the order of its shards. A table that does not
// fit into the processor's caches answers as fast as memory does: what one operation
// needs is known only when the operation before it is done, unless several are looked
// at together. Those on one shard are: their entries are fetched side by side, under
// one lock instead of several.
type round struct {
	hash [roundOps]uint64
	next [roundOps]uint8 // the next operation in the same lane
	in   [roundOps]*shard
	// lanes are chains of operations, the first and the last of each. Those of one shard
	// are in one lane, in their order; a lane may hold those of several shards.
	first, last [roundLanes]uint8
}

const (
	// roundOps is how many operations are put in order together: more would push each
	// other out of the nearest cache before their turn comes.
	roundOps   = 128
	roundLanes = 64
	noOp       = roundOps // behind the last operation of a lane
)

// sort puts the operations into lanes.
func (r *round) sort(t *Table, ops []Op) {
	for i := range r.first {
		r.first[i] = noOp
	}
	for i := range ops {
		r.hash[i], r.in[i] = t.find(ops[i].Key)
		r.next[i] = noOp
		lane := r.in[i].number % roundLanes
		if r.first[lane] == noOp {
			r.first[lane] = uint8(i)
		} else {
			r.next[r.last[lane]] = uint8(i)
		}
		r.last[lane] = uint8(i)
	}
}

// fetch has the processor load what operation i and those behind it on the same shard
// will find. It waits for nothing: no load depends on one for another operation.
func (r *round) fetch(s *shard, i uint8, ops []Op) {
	logs := false
	for i := i; i != noOp && r.in[i] == s; i = r.next[i] {
		if ops[i].Code == OpCheck {
			s.fetchCheck(r.hash[i], ops[i].Text)
			continue
		}
		s.fetched += s.Index.Prefetch(r.hash[i], &s.Slab)
		logs = logs || store.HasLog(uint8(ops[i].Limit.Algorithm))
	}
	for ; logs && i != noOp && r.in[i] == s; i = r.next[i] {
		if store.HasLog(uint8(ops[i].Limit.Algorithm)) {
			s.fetched += fetchLog(&s.Index, r.hash[i], &s.Slab)
		}
	}
}

// fetchLog reads the ends of the log that find will find, where most of what an operation
// does to it is done.
func fetchLog(x *store.Index, h uint64, s *arena.Slab) uint64 {
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

// turn is one caller's hold on the shards, one at a time, while it works through a
// batch.
type turn struct {
	s   *shard
	ops int
}

// turnOps is how many operations in a row a caller may do under one lock. A batch has
// up to a thousand, of which the dearest (a long list of leases) take tens of
// microseconds each; all of them at once would be felt by every other connection.
const turnOps = 64

// enter locks a shard and reports true, unless it is held already.
func (t *turn) enter(s *shard) (locked bool) {
	if s.t.high() {
		t.leave()
		s.t.reclaim(false)
	}
	t.ops++
	if s == t.s && t.ops <= turnOps {
		return false
	}
	t.leave()
	s.mu.Lock()
	t.s, t.ops = s, 1
	return true
}

// leave unlocks the shard that is held, if one is. Callers defer it, so that a panic
// leaves no shard locked.
func (t *turn) leave() {
	if t.s != nil {
		t.s.unlock()
		t.s = nil
	}
}
