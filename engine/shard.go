package engine

import (
	"hash/maphash"
	"sync"
)

// shard is one independently locked part of a table. All fields but mu are
// guarded by mu.
type shard struct {
	mu       sync.Mutex
	t        *Table
	number   int   // among the table's shards
	nowNs    int64 // the latest time seen; it never goes back
	offsetNs int64
	slab     slab
	index    index
	wheel    wheel
	limits   limitTable
	changes  changeLog
	counts   counts
	wander   uint64                          // where evict looks next
	looking  bool                            // see look
	resume   Stamp                           // the shard's own time during a look
	scratch  [2 + MaxNameLen + MaxIDLen]byte // for the key of a token
	checker  checker                         // for the first of the shards of a check
}

// counts are the shard's share of Stats.
type counts struct {
	entries                    [numKinds]int64 // by kind
	blocked                    int64           // keys that have both a limiter and a block
	expired, evicted, forgiven int64
	admitted, denied           [numAlgorithms]int64
	penalties, lockouts        int64 // that strikes began
}

func (s *shard) init(t *Table) {
	s.t = t
	s.slab = newSlab(&t.used)
	s.index = newIndex(&t.used)
	s.limits = newLimitTable(&t.used)
	s.wheel = wheel{dueNs: Never}
	s.changes = changeLog{on: t.opts.TrackChanges}
	s.counts = counts{}
}

// collectPerOp is how many wheel steps an operation pays for. An entry is stepped
// over at most once per level of the wheel, so this keeps up with any traffic.
const collectPerOp = 4

// enter brings the shard's time up to the stamp.
func (s *shard) enter(at Stamp) {
	s.nowNs = max(s.nowNs, at.NowNs)
	s.offsetNs = at.WallOffsetNs
	if s.nowNs-idleGraceNs >= s.wheel.dueNs {
		s.collect(collectPerOp)
	}
}

// hashKey is the hash by which the index knows a key: the bits that choose the
// shard are shifted away.
func (t *Table) hashKey(key []byte) uint64 { return maphash.Bytes(t.seed, key) << t.shardBits }

func (s *shard) hashOf(r ref) uint64 { return s.t.hashKey(entry(s.slab.at(r)).key()) }
