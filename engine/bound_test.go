package engine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/race"
)

// boundRun is one run of random mixes of traffic on a bounded table.
type boundRun struct {
	seed    uint64
	bytes   int64
	ops     int
	perMix  int // operations before the mix changes
	shards  int
	keys    int // of each kind
	worst   int // offenders
	byBatch bool
}

// boundResult is what a run measured.
type boundResult struct {
	refused, kept    int
	most             int64 // the most bytes at any time
	evicted, expired int64
}

func (r boundRun) run(t *testing.T) (got boundResult) {
	table := engine.NewTable(engine.Options{
		MaxMemoryBytes: r.bytes, Shards: r.shards, TrackChanges: r.byBatch, IDLifetimeNs: 2e9,
	})
	b := newBoundTraffic(r.seed, r.bytes, r.keys)
	out := make([]engine.Decision, boundBatch)
	table.Decide(engine.Stamp{NowNs: b.nowNs}, b.policies(), out)
	worst := newOffenders(r.worst)
	require.Equal(t, r.worst, worst.ask(table, b.nowNs, worst.limit.Max))
	ops := make([]engine.Op, boundBatch)
	for n := 0; n < r.ops; n += boundBatch {
		if n/r.perMix != (n-boundBatch)/r.perMix {
			b.mix = newMix(b.Rand)
		}
		b.batch(ops)
		if r.byBatch && b.IntN(8) == 0 {
			table.DecideAtomic(engine.Stamp{NowNs: b.nowNs}, ops[:16], out)
		} else {
			table.Decide(engine.Stamp{NowNs: b.nowNs}, ops, out)
		}
		for i := range out {
			if out[i].Status == engine.OutOfMemory {
				got.refused++
			}
		}
		got.most = max(got.most, table.MemoryBytes())
		if r.byBatch && b.IntN(32) == 0 {
			require.NoError(t, table.Drain(1000, func([]engine.Change) error { return nil }))
		}
	}
	got.kept = r.worst - worst.ask(table, b.nowNs, 1)
	s := table.Stats(engine.Stamp{NowNs: b.nowNs})
	got.evicted, got.expired = s.Evicted, s.Expired
	return got
}

// TestBound checks that a table which may evict refuses nothing, stays within its bound and keeps the keys that are
// limited most. The mix of kinds and lengths varies.
func TestBound(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	evicted := int64(0)
	for seed := range uint64(8) {
		r := boundRun{
			seed: seed, bytes: int64(4+seed%3*2) << 20, ops: 40_000,
			perMix: 10_000, shards: 1 << (seed % 5), keys: 1 << 20, worst: 100,
		}
		r.byBatch = seed%2 == 0
		got := r.run(t)
		evicted += got.evicted
		t.Logf("%+v: %+v", r, got)
		require.Zero(t, got.refused, "%+v", r)
		require.LessOrEqual(t, got.most, r.bytes+r.bytes/100, "%+v", r)
		require.GreaterOrEqual(t, got.kept, r.worst*9/10, "%+v", r)
	}
	require.Positive(t, evicted)
}
