package engine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/race"
)

// These tests cover leases, strikes, counters and totals.

// TestTrapTooManyHolders checks that the leases on one key are bounded, and that a refusal has its own status.
func TestTrapTooManyHolders(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	b := newProbe()
	l := windowOf(engine.Concurrency, 0, 2*engine.MaxHolders)
	require.EqualValues(t, engine.MaxHolders, b.admits(l, engine.MaxHolders))
	require.Equal(t, engine.Decision{Status: engine.TooManyHolders}, b.take(l, 1))
	again := b.do(engine.Op{Limit: l, Cost: 1, TTLNs: 60e9, Text: []byte("7")})
	require.EqualValues(t, 1, again.Allowed, "a renewal must not need another slot")
}

// TestTrapStrikePenaltiesGrow checks that a strike which reaches a threshold blocks, and that each step blocks
// longer.
func TestTrapStrikePenaltiesGrow(t *testing.T) {
	b := newProbe()
	steps := engine.MakeSteps([]engine.Step{{Threshold: 4, PenaltyNs: 2e9}, {Threshold: 6, PenaltyNs: 5e9},
		{Threshold: 11, PenaltyNs: 900e9}})
	l := engine.Limit{Algorithm: engine.Strike, WindowNs: 900e9, Max: 11, Steps: steps}
	wantMs := map[int]int64{4: 2000, 6: 5000, 11: 900_000}
	for i := 1; i <= 11; i++ {
		d := b.take(l, 1)
		require.Equal(t, wantMs[i], d.RetryMs, "strike %d", i)
		require.EqualValues(t, one(wantMs[i] == 0), d.Allowed)
		require.EqualValues(t, 11-i, d.Remaining)
		require.EqualValues(t, one(wantMs[i] == 0), b.take(l, 0).Allowed,
			"a look before the attempt must show the block")
		b.nowNs += wantMs[i] * 1e6
	}
	for range 6 { // the fourth begins a penalty, and strikes during it begin none
		b.take(l, 1)
	}
	stats := b.table.Stats(engine.Stamp{NowNs: b.nowNs})
	require.EqualValues(t, []int64{4, 1}, []int64{stats.Penalties, stats.Lockouts})
}

// TestTrapIncrementOutOfBounds checks that an increment out of bounds changes neither the value nor its time to live.
func TestTrapIncrementOutOfBounds(t *testing.T) {
	b := newProbe()
	up := engine.Incr{By: 1, Upper: 2, Expire: engine.ExpireIn, ExpireNs: 60e9}
	op := engine.Op{Code: engine.OpIncr, Incr: &up}
	for i := range int64(2) {
		require.Equal(t, engine.Decision{Allowed: 1, Remaining: i + 1}, b.do(op))
	}
	b.nowNs += 59e9
	require.Equal(t, engine.Decision{Remaining: 2}, b.do(op))
	b.nowNs += 1e9
	require.Equal(t, engine.Decision{Allowed: 1, Remaining: 1}, b.do(op),
		"the counter must have expired at its first deadline")
}

// TestTrapLooksAreNotCounted checks that looks do not count in the totals, also on a blocked key.
func TestTrapLooksAreNotCounted(t *testing.T) {
	forAllOfTen(t, func(t *testing.T, b *probe, l engine.Limit) {
		for _, blocked := range []int64{0, 1} {
			b.take(l, 0)
			b.do(engine.Op{Limit: l, Cost: 1, Text: []byte("dry"), Dry: true})
			b.take(l, 1)
			s := b.table.Stats(engine.Stamp{NowNs: b.nowNs})
			require.EqualValues(t, 1, s.Admitted[l.Algorithm])
			require.Equal(t, blocked, s.Denied[l.Algorithm])
			b.do(engine.Op{Code: engine.OpBlock, TTLNs: engine.Never})
		}
	})
}

// TestCounterIsCounted checks that an increment counts in the totals like any other decision.
func TestCounterIsCounted(t *testing.T) {
	table, at := engine.NewTable(engine.Options{}), engine.Stamp{NowNs: 1e18}
	for _, by := range []int64{1, 1, 1, -1, 0} {
		in := &engine.Incr{By: by, Lower: 0, Upper: 2}
		decideOne(table, step{at, engine.Op{Code: engine.OpIncr, Key: []byte("k"), Incr: in}})
	}
	s := table.Stats(at)
	require.EqualValues(t, 2, s.Admitted[engine.Counter])
	require.EqualValues(t, 1, s.Denied[engine.Counter])
}
