package store

import (
	"math"
	"sync/atomic"

	"github.com/weir-project/weir/engine/internal/arena"
)

// Memory is counted in pages, index segments and limits, for the whole table. With
// Options.MaxMemoryBytes an operation answers to these levels of it:
//
//   - From soft on, an operation that adds an entry evicts others that take as much
//     (AdmitBytes). What they leave are free slots here and there.
//   - From high on, reclaim makes free slots into free pages before each operation, and
//     evicts where too few slots are free.
//   - From urgent on, reclaim does so until memory is below that.
//   - At the bound nothing is added. An operation that has begun needs the slack between
//     high and the bound: nothing is moved while it knows where its entries are.
//
// A replica only compacts: what it evicts and what it lets in is decided by the leader.
type levels struct {
	soft, high, urgent, bound int64
	share                     int64 // of one shard, of soft
}

const (
	softNum, softDen = 7, 8
	slackDen         = 16 // the part of the bound above high: half of what is above soft

	// MinShardBytes is the least share of the bound that a shard may have: some pages for
	// slots of every length. A replica's share is larger. The leader evicts by what its own
	// table takes, and half of a page for each shard and length is a twentieth of this: so
	// much memory of nodes with more shards than the leader may exceed that of the leader.
	MinShardBytes        = 1 << 20
	MinReplicaShardBytes = 4 << 20
)

func levelsFor(bound int64, full FullPolicy, shards int) levels {
	l := levels{math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64}
	if bound == 0 {
		return l
	}
	slack := bound / slackDen
	l.high, l.urgent = bound-slack, bound-slack/2
	if full != Replica {
		l.soft, l.bound = bound/softDen*softNum, bound
		l.share = l.soft / int64(shards)
	}
	return l
}

// Memory is what the shards of a table share of their memory: what they use, and the bound.
type Memory struct {
	full    FullPolicy
	used    atomic.Int64 // bytes of pages, segments and limits
	evicted atomic.Int64 // entries given up
	levels  levels
}

// Bound sets the bound, 0 for none, of a number of shards.
func (m *Memory) Bound(bytes int64, full FullPolicy, shards int) {
	m.full, m.levels = full, levelsFor(bytes, full, shards)
}

// UsedBytes is what is in use.
func (m *Memory) UsedBytes() int64 { return m.used.Load() }

// Evicted is how many entries were given up; it grows whenever one is.
func (m *Memory) Evicted() int64 { return m.evicted.Load() }

// High reports whether memory is above the level from which on it is reclaimed.
func (m *Memory) High() bool { return m.used.Load() > m.levels.high }

// Urgent reports whether memory is to be reclaimed until it is below a level.
func (m *Memory) Urgent() bool { return m.used.Load() > m.levels.urgent }

// closed reports whether memory may grow no more.
func (m *Memory) closed() bool {
	used := m.used.Load() + arena.PageBytes
	return used > m.levels.bound || m.full == Deny && used > m.levels.soft
}

// FullPolicy says what happens to a new entry when memory is full.
type FullPolicy uint8

// The policies.
const (
	LeastHarm FullPolicy = iota // evict what is nearest to idle
	Deny                        // answer OutOfMemory
	Replica                     // add it: evictions come as OpForget, and compaction changes no answer
)
