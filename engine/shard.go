package engine

import (
	"sync"

	"github.com/weir-project/weir/engine/internal/heavy"
	"github.com/weir-project/weir/engine/internal/rule"
	"github.com/weir-project/weir/engine/internal/store"
)

// shard is one independently locked part of a table. All fields but mu are
// guarded by mu.
type shard struct {
	mu sync.Mutex
	store.Store
	t            *Table
	number       int // among the table's shards
	heavy        heavy.Counter
	decided      decided
	scratch      [2 + MaxNameLen + MaxIDLen]byte // for the key of a token
	forgotten    []forgottenUsage                // what is to be forgotten before anything else
	scriptBuffer []byte                          // the bytes that a script found
	fetched      uint64                          // keeps prefetches from being optimized away
	checker      checker                         // for the first of the shards of a check
}

// decided are the shard's share of Stats that decisions count.
type decided struct {
	admitted, denied           [rule.NumAlgorithms]int64
	strikes, successes, delays int64 // of the successes the strikes that their attempts were
	penalties, lockouts        int64 // that strikes began
}

func (s *shard) init(t *Table) {
	s.t = t
	s.Reset(&t.memory, t.opts.TrackChanges, t.hashKey, s.noteBlock)
	s.decided = decided{}
	s.forgotten = nil
	s.heavy = heavy.NewCounter()
}

// collectPerOp is how many wheel steps an operation pays for. An entry is stepped
// over at most once per level of the wheel, so this keeps up with any traffic.
const collectPerOp = 4

// arrive brings the shard's time up to the stamp.
func (s *shard) arrive(at Stamp) {
	s.NowNs = max(s.NowNs, at.NowNs)
	s.OffsetNs = at.WallOffsetNs
}

// enter readies the shard for an operation at the stamp.
func (s *shard) enter(at Stamp) {
	s.arrive(at)
	s.flushForgotten()
	if s.Wheel.Due(s.NowNs - store.IdleGraceNs) {
		s.Collect(collectPerOp)
	}
}

// A look reads a shard at a stamp that may lie ahead of its last decision. Replicas
// are looked at at different times and must decide alike all the same, so a look
// leaves no trace: the shard's time is put back, and what logs and leases have yet
// to forget stays.

// look moves a locked shard to a stamp until unlock.
func (s *shard) look(at Stamp) {
	s.flushForgotten()
	s.BeginLook(at.NowNs, at.WallOffsetNs)
}

// unlock gives the shard back and ends a look.
func (s *shard) unlock() {
	s.EndLook()
	s.mu.Unlock()
}

// pause lets others have the shard for a moment.
func (s *shard) pause() {
	s.mu.Unlock()
	s.mu.Lock()
}

func (s *shard) visit(at Stamp, visit func(*shard)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.NowNs = max(s.NowNs, at.NowNs)
	s.flushForgotten()
	visit(s)
}

// drainSome moves up to n changes into the batch and reports whether there are more.
func (s *shard) drainSome(b *store.Batch, n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flushForgotten()
	return s.DrainBatch(b, n)
}

// reclaim makes one step in the shard, and notes whether there was one to make.
func (s *shard) reclaim() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Exhausted.Store(!s.ReclaimSome())
}

// victim returns copies of the key and the id of the shard's victim, and its bytes; a nil key
// if there is none.
func (s *shard) victim(at Stamp) (key, id []byte, size int64) {
	s.mu.Lock()
	defer s.unlock()
	s.look(at)
	r := s.NearestIdle(0)
	if r == 0 {
		return nil, nil, 0
	}
	e := store.Entry(s.Slab.At(r))
	name, size := append([]byte{}, e.Key()...), s.SlotBytes(r, e)
	if e.Kind() != store.KindToken {
		return name, nil, size
	}
	key, ok := store.KeyOfToken(name)
	if !ok {
		panic("engine: a token without its key")
	}
	return key, name[2+len(key):], size
}
