package engine

import (
	"sync"
	"sync/atomic"

	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/engine/internal/heavy"
	"github.com/weir-project/weir/engine/internal/rule"
)

// shard is one independently locked part of a table. All fields but mu are
// guarded by mu.
type shard struct {
	mu         sync.Mutex
	t          *Table
	number     int   // among the table's shards
	nowNs      int64 // the latest time seen; it never goes back
	offsetNs   int64
	slab       arena.Slab
	index      index
	wheel      wheel
	limits     limitTable
	changes    changeLog
	counts     counts
	wander     uint64      // where evict looks next
	used       arena.Meter // read without mu
	barren     atomic.Bool // has nothing to give, as far as the last look for it tells
	compaction compaction
	shedding   shedding
	looking    bool    // see look
	resume     Stamp   // the shard's own time during a look
	lent       []entry // copies with logs that a look has
	listed     []claim // the claims looked at last
	claimName  [markLen + MaxIDLen]byte
	heavy      heavy.Counter
	scratch    [2 + MaxNameLen + MaxIDLen]byte // for the key of a token
	gone       []gone                          // what is to be forgotten before anything else
	kept       []byte                          // the bytes that a script found
	fetched    uint64                          // keeps fetch from being optimized away
	checker    checker                         // for the first of the shards of a check
}

// counts are the shard's share of Stats.
type counts struct {
	entries                    [numKinds]int64 // by kind
	blocked                    int64           // keys that have both a limiter and a block
	expired, evicted, forgiven int64
	admitted, denied           [rule.NumAlgorithms]int64
	strikes, successes, delays int64 // of the successes the strikes that their attempts were
	penalties, lockouts        int64 // that strikes began
}

func (s *shard) init(t *Table) {
	s.t = t
	s.used.CountIn(&t.used)
	s.slab = arena.NewSlab(&s.used)
	s.index = newIndex(&s.used)
	s.limits = newLimitTable(&s.used)
	s.compaction, s.shedding = compaction{}, shedding{}
	s.wheel = newWheel()
	s.changes = changeLog{on: t.opts.TrackChanges}
	s.counts = counts{}
	s.gone = nil
	s.heavy = heavy.NewCounter()
}

// collectPerOp is how many wheel steps an operation pays for. An entry is stepped
// over at most once per level of the wheel, so this keeps up with any traffic.
const collectPerOp = 4

// arrive brings the shard's time up to the stamp.
func (s *shard) arrive(at Stamp) {
	s.nowNs = max(s.nowNs, at.NowNs)
	s.offsetNs = at.WallOffsetNs
}

// enter readies the shard for an operation at the stamp.
func (s *shard) enter(at Stamp) {
	s.arrive(at)
	s.settleGone()
	if s.wheel.due(s.nowNs - idleGraceNs) {
		s.collect(collectPerOp)
	}
}

func (s *shard) hashOf(r arena.Ref) uint64 { return s.t.hashKey(entry(s.slab.At(r)).key()) }
