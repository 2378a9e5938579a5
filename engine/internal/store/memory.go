package store

import (
	"math"
	"sync/atomic"

	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/internal/offheap"
)

// levels are the amounts of memory at which operations react. Memory is counted in pages, index segments
// and limits, for the whole table. The levels follow from Options.MaxMemoryBytes:
//
//   - From soft on, an operation that adds an entry first evicts others with as many bytes (AdmitBytes). This
//     frees slots, but usually no pages.
//   - From high on, reclaim turns free slots into free pages before each operation. It evicts entries if too
//     few slots are free.
//   - From urgent on, reclaim makes steps until memory is below urgent.
//   - At the bound, nothing is added. The slack between high and the bound is for operations that have begun:
//     reclaim runs between operations only, because it moves entries to which an operation holds references.
//
// A replica only compacts. The leader decides what a replica evicts and adds.
type levels struct {
	soft, bound int64
	share       int64 // the part of soft for one shard
}

const (
	softNum, softDen = 7, 8
	slackDen         = 16 // the slack between high and the bound is 1/slackDen of the bound

	// MinShardBytes is the least share of the memory bound that a shard may have: some pages for each size of
	// slots. MinReplicaShardBytes is larger, because the leader evicts by the memory of its node. A
	// replica with more shards uses about half a page more for each shard and size of slots. That is a
	// twentieth of MinReplicaShardBytes.
	MinShardBytes        = 1 << 20
	MinReplicaShardBytes = 4 << 20
)

func levelsFor(bound int64, full FullPolicy, shards int) levels {
	l := levels{math.MaxInt64, math.MaxInt64, math.MaxInt64}
	if bound == 0 || full == Replica {
		return l
	}
	l.soft, l.bound = bound/softDen*softNum, bound
	l.share = l.soft / int64(shards)
	return l
}

// Memory is the memory of a table, shared by its shards, and its bound.
type Memory struct {
	pages    arena.Pages
	segments offheap.Blocks[Segment]

	full    FullPolicy
	used    atomic.Int64 // bytes of pages, segments and limits
	evicted atomic.Int64 // entries dropped to free memory
	levels  levels
	high    atomic.Int64 // these two change on replicas
	urgent  atomic.Int64
}

// Bound sets the memory bound of a number of shards. 0 means no bound.
func (m *Memory) Bound(bytes int64, full FullPolicy, shards int) {
	m.full, m.levels = full, levelsFor(bytes, full, shards)
	if m.SetHigh(math.MaxInt64, math.MaxInt64); bytes > 0 {
		slack := bytes / slackDen
		m.SetHigh(bytes-slack, bytes-slack/2)
	}
}

// SetHigh replaces the levels above which memory is reclaimed. Only a replica may call it later: on other tables they
// depend on the bound.
func (m *Memory) SetHigh(high, urgent int64) {
	m.high.Store(high)
	m.urgent.Store(urgent)
}

// TakeBack takes back the memory of discarded stores.
func (m *Memory) TakeBack(d *Discarded) {
	m.pages.ReturnAll(d.pages)
	m.segments.ReturnAll(d.segments)
}

// Used returns the counter of the bytes in use.
func (m *Memory) Used() *atomic.Int64 { return &m.used }

// UsedBytes returns the bytes in use.
func (m *Memory) UsedBytes() int64 { return m.used.Load() }

// Evicted returns how many entries were dropped to free memory. A change of this number tells that an entry which
// was found before may be gone.
func (m *Memory) Evicted() int64 { return m.evicted.Load() }

// High reports whether memory is above the level at which reclaiming begins.
func (m *Memory) High() bool { return m.used.Load() > m.high.Load() }

// Urgent reports whether memory must be reclaimed until it is below the urgent level.
func (m *Memory) Urgent() bool { return m.used.Load() > m.urgent.Load() }

// closed reports whether memory may not grow by another page.
func (m *Memory) closed() bool {
	used := m.used.Load() + arena.PageBytes
	return used > m.levels.bound || m.full == Deny && used > m.levels.soft
}

// FullPolicy selects what happens to a new entry if memory is full.
type FullPolicy uint8

// The policies of a full table.
const (
	LeastHarm FullPolicy = iota // evict the entry nearest to idle
	Deny                        // answer OutOfMemory
	Replica                     // add it; the leader evicts by OpForget, and compaction changes no answer
)
