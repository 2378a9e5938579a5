package engine

import (
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/weir-project/weir/engine/internal/rule"
)

var le = binary.LittleEndian

// Options shape a table. The zero value is usable.
type Options struct {
	// Shards is the number of independently locked parts, a power of two up to
	// 32768; 0 means 16.
	Shards int
	// MaxMemoryBytes bounds the memory of entries and index; 0 means no bound.
	MaxMemoryBytes int64
	// WhenFull says what a new entry finds at the bound.
	WhenFull FullPolicy
	// IDLifetimeNs is how long an operation's ID is remembered; 0 means 60 s.
	IDLifetimeNs int64
	// TrackChanges makes the table remember what changed for Drain.
	TrackChanges bool
}

// FullPolicy says what happens to a new entry when memory is full.
type FullPolicy uint8

// The policies.
const (
	LeastHarm FullPolicy = iota // evict what is nearest to idle
	Deny                        // answer OutOfMemory
	Replica                     // add it: evictions come as OpForget, and compaction changes no answer
)

const (
	defaultIDLifetimeNs = int64(60e9)

	defaultShards = 16
	// With eight shards a processor few callers meet at one, and a pipeline still has
	// several operations for each, which is what makes them cheap (see round).
	shardsPerProcessor = 8
	maxShards          = 1 << 15
)

// ShardsFor returns how many shards suit a number of processors.
func ShardsFor(processors int) int {
	n := min(max(shardsPerProcessor*processors, defaultShards), maxShards)
	return 1 << bits.Len(uint(n-1))
}

// Table holds limiters. Its methods may be called from many goroutines.
type Table struct {
	opts       Options
	seed       maphash.Seed // of the hashes of keys
	policySeed maphash.Seed // see hashPolicy
	shardBits  int
	used       atomic.Int64 // bytes of pages, segments and limits
	shards     []shard
	asked      atomic.Uint64 // shards that Victims has asked
	evicted    atomic.Int64  // entries given up for room
	levels     levels
	skips      atomic.Int64 // see relieve

	// policies is changed only by who holds all shards.
	policies        atomic.Pointer[Policies]
	policyMu        sync.Mutex          // guards what follows
	policiesChanged map[string]struct{} // since the last Drain

	everywhere   atomic.Pointer[blocksEverywhere] // nil: there is none
	everywhereMu sync.Mutex                       // held to change it, behind a shard's
}

// NewTable returns an empty table.
func NewTable(o Options) *Table {
	if o.Shards == 0 {
		o.Shards = defaultShards
	}
	if o.IDLifetimeNs == 0 {
		o.IDLifetimeNs = defaultIDLifetimeNs
	}
	o.Shards = o.shardsWithin()
	t := &Table{opts: o, levels: o.levels(), seed: maphash.MakeSeed(), policySeed: maphash.MakeSeed(), shardBits: bits.TrailingZeros(uint(o.Shards))}
	t.policies.Store(newPolicies())
	t.shards = make([]shard, o.Shards)
	for i := range t.shards {
		t.shards[i].number = i
		t.shards[i].init(t)
	}
	return t
}

// Len returns the number of keys that are not idle. Like Collect it forgets idle
// entries, so on a replica its stamp must not be ahead of the next decision's.
func (t *Table) Len(at Stamp) (n int64) {
	t.eachShard(at, func(s *shard) {
		s.collectAll(s.pause)
		n += s.keys()
	})
	return n
}

// keys counts the keys of a shard, idle ones that have not been collected included.
func (s *shard) keys() (n int64) {
	for kind, count := range s.counts.entries {
		if kind < int(kindToken) {
			n += count
		}
	}
	return n - s.counts.blocked
}

// pause lets others have the shard for a moment.
func (s *shard) pause() {
	s.mu.Unlock()
	s.mu.Lock()
}

func (t *Table) eachShard(at Stamp, visit func(*shard)) {
	for i := range t.shards {
		t.shards[i].visit(at, visit)
	}
}

func (s *shard) visit(at Stamp, visit func(*shard)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nowNs = max(s.nowNs, at.NowNs)
	s.settleGone()
	visit(s)
}

// Clear forgets limiters, blocks and remembered IDs, but not the totals of Stats. It
// does not note the removals for Drain. Policies stay, and Drain hands all of them
// out again, for a store that was emptied as well.
func (t *Table) Clear() {
	t.renewPolicies()
	t.eachShard(Stamp{}, func(s *shard) {
		s.used.Add(-s.slab.Bytes() - s.index.bytes() - s.limits.bytes())
		totals := s.counts
		s.forgetEverywhere()
		s.init(t)
		totals.entries, totals.blocked = s.counts.entries, 0
		s.counts = totals
	})
}

// Collect forgets idle entries, looking at most at budget entries per shard, so
// that an idle table gives its memory back. The stamp counts like that of a decision:
// what comes later with an earlier one is decided at this.
func (t *Table) Collect(at Stamp, budget int) {
	t.eachShard(at, func(s *shard) { s.collect(budget) })
}

// Stats describes the table. Its stamp is as that of Len.
func (t *Table) Stats(at Stamp) (st Stats) {
	t.eachShard(at, func(s *shard) {
		s.collectAll(s.pause)
		st.Keys += s.keys()
		for a := range rule.NumAlgorithms {
			st.KeysBy[a] += s.counts.entries[a]
			st.Admitted[a] += s.counts.admitted[a]
			st.Denied[a] += s.counts.denied[a]
		}
		st.Expired += s.counts.expired
		st.Evicted += s.counts.evicted
		st.ForgivenUnits += s.counts.forgiven
		st.Strikes += s.counts.strikes
		st.Successes += s.counts.successes
		st.Delays += s.counts.delays
		st.Penalties += s.counts.penalties
		st.Lockouts += s.counts.lockouts
	})
	st.MemoryBytes, st.MaxMemoryBytes = t.used.Load(), t.opts.MaxMemoryBytes
	return st
}
