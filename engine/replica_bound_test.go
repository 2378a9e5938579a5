package engine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/race"
)

// boundedReplicas are two replicas, one with a memory bound, and the contents of their stores.
type boundedReplicas struct {
	t              *testing.T
	bounded, free  *engine.Table
	stored         [2]entries
	answers, other []engine.Decision
}

func newBoundedReplicas(t *testing.T, bound int64) *boundedReplicas {
	o := engine.Options{MaxMemoryBytes: bound, WhenFull: engine.Replica, Shards: 64, TrackChanges: true}
	return &boundedReplicas{
		t:       t,
		bounded: engine.NewTable(o),
		free:    engine.NewTable(engine.Options{Shards: 4, TrackChanges: true}),
		stored:  [2]entries{{}, {}},
	}
}

// decide runs the same operations on both, and compares the answers.
func (r *boundedReplicas) decide(nowNs int64, ops []engine.Op, atomic bool) {
	r.answers, r.other = make([]engine.Decision, len(ops)), make([]engine.Decision, len(ops))
	for table, out := range map[*engine.Table][]engine.Decision{r.bounded: r.answers, r.free: r.other} {
		if atomic {
			table.DecideAtomic(engine.Stamp{NowNs: nowNs}, ops, out)
		} else {
			table.Decide(engine.Stamp{NowNs: nowNs}, ops, out)
		}
	}
	require.Equal(r.t, r.other, r.answers)
}

// evict evicts like a leader, by the memory of the bounded table.
func (r *boundedReplicas) evict(nowNs, soft int64) {
	var ops []engine.Op
	r.bounded.Victims(engine.Stamp{NowNs: nowNs}, r.bounded.CompactBytes()-soft, 1<<20, func(key, id []byte) {
		ops = append(ops, engine.Op{Code: engine.OpForget, Key: key, ID: id})
	})
	r.decide(nowNs, ops, false)
}

// drain moves the changes of both tables into their stores.
func (r *boundedReplicas) drain() {
	for i, table := range []*engine.Table{r.bounded, r.free} {
		require.NoError(r.t, table.Drain(1000, into(r.t, r.stored[i])))
	}
}

// reload returns a table loaded from the store of one replica.
func (r *boundedReplicas) reload(i int) *engine.Table {
	table := engine.NewTable(engine.Options{})
	loadInto(r.t, table, engine.Stamp{}, r.stored[i])
	return table
}

// TestCompactionOfReplicas checks that a replica with a memory bound has the same answers, state and store as a replica
// without a bound. Compaction must keep it within the bound.
func TestCompactionOfReplicas(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	for seed := range uint64(2) {
		bound := int64(4+4*seed) << 20
		r, b := newBoundedReplicas(t, bound), newBoundTraffic(seed, bound, 1<<20)
		r.decide(b.nowNs, b.policies(), false)
		ops, most := make([]engine.Op, boundBatch), []int64{0, 0}
		for n := range 300 {
			if n%75 == 74 {
				b.mix = newMix(b.Rand)
			}
			b.batch(ops)
			r.decide(b.nowNs, ops, n%8 == 0)
			most[0], most[1] = max(most[0], r.bounded.MemoryBytes()), max(most[1], r.free.MemoryBytes())
			r.evict(b.nowNs, bound/8*7)
			if n%32 == 0 {
				r.drain()
			}
		}
		at := engine.Stamp{NowNs: b.nowNs}
		require.LessOrEqual(t, most[0], bound+bound/100)
		require.Greater(t, most[1], bound, "without compaction the bound must be exceeded")
		require.Positive(t, r.bounded.Stats(at).Evicted)
		require.Equal(t, r.free.StateHash(at), r.bounded.StateHash(at))
		r.drain()
		require.Equal(t, r.reload(1).StateHash(at), r.reload(0).StateHash(at))
	}
}

// TestReplicasEvictNothing checks that a replica beyond its bound admits everything in the log and evicts nothing.
func TestReplicasEvictNothing(t *testing.T) {
	const bound, keys = 1 << 20, 10_000
	table := engine.NewTable(engine.Options{MaxMemoryBytes: bound, WhenFull: engine.Replica})
	at := engine.Stamp{NowNs: 1e18}
	for n := range keys {
		op := engine.Op{Key: longKey(n, 50+n%400), Limit: bucketOf(1, boundHourNs, 10), Cost: 1}
		require.EqualValues(t, 9, decideOne(table, step{at, op}).Remaining)
	}
	require.Greater(t, table.MemoryBytes(), int64(bound))
	require.Zero(t, table.Stats(at).Evicted)
	require.EqualValues(t, keys, table.Len(at))
}
