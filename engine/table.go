package engine

import (
	"encoding/binary"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/weir-project/weir/engine/hashslot"
	"github.com/weir-project/weir/engine/internal/events"
	"github.com/weir-project/weir/engine/internal/rule"
	"github.com/weir-project/weir/engine/internal/store"
)

var le = binary.LittleEndian

// Options configure a table. The zero value is usable.
type Options struct {
	// Shards is the number of independently locked parts, a power of two up to 32768; 0 means 16. With a memory
	// bound a table has fewer shards if their shares would be too small.
	Shards int
	// MaxMemoryBytes bounds the memory of entries and index; 0 means no bound.
	MaxMemoryBytes int64
	// WhenFull selects what happens to a new entry at the bound.
	WhenFull FullPolicy
	// IDLifetimeNs is how long an operation's ID is remembered; 0 means 60 s.
	IDLifetimeNs int64
	// TrackChanges makes the table record changes for Drain.
	TrackChanges bool
	// HashSeed is the secret of the hashes of keys; zero means a random one.
	HashSeed HashSeed
	// EventsBytes bounds the log of events, at least MinEventsBytes; 0 means DefaultEventsBytes. Replicas must have the
	// same bound.
	EventsBytes int64
}

const (
	defaultIDLifetimeNs = int64(60e9)

	defaultShards = 16
	// shardsPerProcessor is large enough that few callers contend for one shard. It is small enough that a
	// pipeline still has several operations per shard, which makes them cheap (see shardBatch).
	shardsPerProcessor = 8
	maxShardBits       = 15
	maxShards          = 1 << maxShardBits
)

// ShardsFor returns a suitable number of shards for a number of processors.
func ShardsFor(processors int) int {
	n := min(max(shardsPerProcessor*processors, defaultShards), maxShards)
	return 1 << bits.Len(uint(n-1))
}

// Table holds limiters. Its methods are safe for concurrent use.
type Table struct {
	opts        Options
	keys        keyHash // of keys
	policyNames keyHash // see hashPolicy
	shardBits   int
	memory      store.Memory
	rules       atomic.Uint32 // Rules
	shards      []shard
	asked       atomic.Uint64 // the number of shards that Victims has asked
	skips       atomic.Int64  // operations left before the next search of reclaim

	// policies is replaced by a caller that holds the locks of all shards, or by Load under policyMu.
	policies        atomic.Pointer[Policies]
	policyMu        sync.Mutex          // guards policiesChanged
	policiesChanged map[string]struct{} // the names of policies that changed since the last Drain

	everywhere everywhereIndex
	order      order
	events     *events.Log
}

// NewTable returns an empty table.
func NewTable(o Options) *Table {
	if o.Shards == 0 {
		o.Shards = defaultShards
	}
	if o.IDLifetimeNs == 0 {
		o.IDLifetimeNs = defaultIDLifetimeNs
	}
	if o.HashSeed == (HashSeed{}) {
		o.HashSeed = NewHashSeed()
	}
	o.Shards = o.shardsWithin()
	t := &Table{
		opts: o, keys: o.HashSeed.hashFor("keys"), policyNames: o.HashSeed.hashFor("policies"),
		shardBits: bits.TrailingZeros(uint(o.Shards)),
	}
	t.rules.Store(uint32(RulesNewest))
	t.memory.Bound(o.MaxMemoryBytes, o.WhenFull, o.Shards)
	t.everywhere.used.CountIn(t.memory.Used())
	t.policies.Store(newPolicies())
	t.events = events.New(o.EventsBytes)
	t.shards = make([]shard, o.Shards)
	for i := range t.shards {
		t.shards[i].number = i
		t.shards[i].init(t)
	}
	return t
}

// Len returns the number of keys of all databases that are not idle. After a change of a definition, the first call
// brings all limiters of policies up to date. Like Collect, it drops idle entries. The limiters of a policy for a
// key that share a bundle count until all of them are idle. On a replica, its
// stamp must not be ahead of the next decision's stamp.
func (t *Table) Len(at Stamp) (n int64) {
	for _, keys := range t.lens(at) {
		n += keys
	}
	return n
}

// lens returns the number of keys of each database; see Len.
func (t *Table) lens(at Stamp) (n [Databases]int64) {
	set := t.policies.Load()
	t.eachShard(at, func(s *shard) {
		s.catchUpOnce(set)
		s.CollectAll(s.pause)
		for database := range n {
			n[database] += s.KeysIn(database)
		}
	})
	return n
}

// LenWithin is Len of one database, without the keys of other groups: the table has only blocks everywhere of them,
// in database 0.
func (t *Table) LenWithin(at Stamp, database int, slots hashslot.Range) int64 {
	n := t.lens(at)[database]
	if database == 0 {
		n -= t.BlocksEverywhere(at).foreign(slots)
	}
	return n
}

// StatsWithin is Stats without the keys of other groups.
func (t *Table) StatsWithin(at Stamp, slots hashslot.Range) Stats {
	st := t.Stats(at)
	st.Keys -= t.BlocksEverywhere(at).foreign(slots)
	return st
}

func (t *Table) eachShard(at Stamp, visit func(*shard)) {
	for i := range t.shards {
		t.shards[i].visit(at, visit)
	}
}

// Clear removes limiters, blocks, holds and remembered IDs, but keeps the totals of Stats. It does not record
// the removals for Drain, because the caller clears the store as well. Policies and events stay, and the next Drain
// hands all of them out again.
func (t *Table) Clear() {
	t.renewPolicies()
	t.events.Renew(true)
	kept := t.clearEverywhere()
	var memory store.Discarded
	t.eachShard(Stamp{}, func(s *shard) {
		s.Discard(&memory)
		totals, decided := s.Counts, s.decided
		s.init(t)
		totals.Entries, totals.Blocked, totals.Elsewhere = s.Counts.Entries, 0, s.Counts.Elsewhere
		s.Counts, s.decided = totals, decided
		for _, b := range kept[s.number] {
			s.keepBlock(b)
		}
	})
	t.memory.TakeBack(&memory)
	t.order.cleared()
}

// Collect drops idle entries, so that an idle table frees its memory. It examines at most budget entries per
// shard. Its stamp counts as that of a decision: later calls with an earlier stamp use this stamp.
func (t *Table) Collect(at Stamp, budget int) {
	t.eachShard(at, func(s *shard) { s.Collect(budget) })
}

// Stats returns the counters of the table. The rule of Len applies to its stamp.
func (t *Table) Stats(at Stamp) (st Stats) {
	t.eachShard(at, func(s *shard) {
		s.CollectAll(s.pause)
		st.Keys += s.Keys()
		for a := range rule.NumAlgorithms {
			st.KeysBy[a] += s.Counts.Entries[a]
			st.Admitted[a] += s.decided.admitted[a]
			st.Denied[a] += s.decided.denied[a]
		}
		st.Expired += s.Counts.Expired
		st.Evicted += s.Counts.Evicted
		st.ForgivenUnits += s.Counts.Forgiven
		st.Strikes += s.decided.strikes
		st.Successes += s.decided.successes
		st.Delays += s.decided.delays
		st.Penalties += s.decided.penalties
		st.Lockouts += s.decided.lockouts
	})
	st.MemoryBytes, st.MaxMemoryBytes = t.memory.UsedBytes(), t.opts.MaxMemoryBytes
	log := t.events.Position()
	st.Events, st.EventsDropped, st.EventsBytes = int64(log.Last), int64(log.Dropped()), log.Bytes
	return st
}

// shardsWithin returns the number of shards, reduced until each has its least share of the memory bound.
func (o *Options) shardsWithin() int {
	least, shards := int64(store.MinShardBytes), o.Shards
	if o.WhenFull == Replica {
		least = store.MinReplicaShardBytes
	}
	for o.MaxMemoryBytes > 0 && shards > 1 && o.MaxMemoryBytes/int64(shards) < least {
		shards /= 2
	}
	return shards
}
