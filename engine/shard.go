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
	t       *Table
	number  int // among the table's shards
	heavy   heavy.Counter
	decided decided
	scratch [2 + MaxNameLen + MaxIDLen]byte // for the key of a token
	gone    []gone                          // what is to be forgotten before anything else
	kept    []byte                          // the bytes that a script found
	fetched uint64                          // keeps prefetches from being optimized away
	checker checker                         // for the first of the shards of a check
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
	s.gone = nil
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
	s.settleGone()
	if s.Wheel.Due(s.NowNs - store.IdleGraceNs) {
		s.Collect(collectPerOp)
	}
}
