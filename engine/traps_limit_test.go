package engine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
)

// These tests cover limits that change while they are in use.

// TestTrapLimitChangesKeepUsage checks that raising a limit takes effect at once, despite earlier denials. Lowering
// it keeps the used units.
func TestTrapLimitChangesKeepUsage(t *testing.T) {
	forAllOfTen(t, func(t *testing.T, b *probe, l engine.Limit) {
		require.EqualValues(t, 10, b.admits(l, 50))
		wider, tighter := l, l
		wider.Max, tighter.Max = l.Max+5, l.Max-5
		require.EqualValues(t, 5, b.admits(wider, 50))
		require.EqualValues(t, 0, b.take(tighter, 1).Allowed)
		require.EqualValues(t, 0, b.take(tighter, 1).Remaining)
	})
}

// TestTrapRaisedLimitTakesEffect checks a key that used up a slow limit and is then denied under a fast limit. It must
// be admitted under the fast limit exactly after the retry time of that denial.
func TestTrapRaisedLimitTakesEffect(t *testing.T) {
	for _, algorithm := range []engine.Algorithm{engine.TokenBucket, engine.LeakyBucket, engine.FixedWindow,
		engine.SlidingCounter} {
		t.Run(algorithm.String(), func(t *testing.T) {
			const dayNs = 24 * int64(3600e9)
			slow := engine.Limit{Algorithm: algorithm, Rate: engine.Rate{Units: 1, PerNs: dayNs},
				WindowNs: dayNs, Max: 5}
			fast := engine.Limit{Algorithm: algorithm, Rate: engine.Rate{Units: 1, PerNs: 1e6}, WindowNs: 1e9, Max: 5}
			table, at := engine.NewTable(engine.Options{}), engine.Stamp{NowNs: 1e18}
			ask := func(l engine.Limit, cost int64) engine.Decision {
				return decideOne(table, step{at, engine.Op{Key: []byte("k"), Limit: l, Cost: cost}})
			}
			require.EqualValues(t, 1, ask(slow, 5).Allowed)
			denied := ask(fast, 5)
			require.Zero(t, denied.Allowed)
			require.Positive(t, denied.RetryMs)
			require.LessOrEqual(t, denied.RetryMs, int64(2000))
			at.NowNs += denied.RetryMs*1e6 - 1e6
			require.Zero(t, ask(fast, 5).Allowed, "the request must not be admitted early")
			at.NowNs += 1e6
			require.EqualValues(t, 1, ask(fast, 5).Allowed, "the request must not be admitted late")
		})
	}
}

// TestTrapLongerLimitTakesEffect checks a key that used up a short limit and is then denied under a longer limit. It must
// stay denied when the short limit would be over.
func TestTrapLongerLimitTakesEffect(t *testing.T) {
	for _, l := range []engine.Limit{bucketOf(1, hourNs, 5), {Algorithm: engine.SlidingLog, WindowNs: hourNs, Max: 5},
		{Algorithm: engine.FixedWindow, Mode: engine.FromFirst, WindowNs: hourNs, Max: 5},
		{Algorithm: engine.SlidingCounter, WindowNs: hourNs, Max: 5}} {
		t.Run(l.Algorithm.String(), func(t *testing.T) {
			short, b := l, newProbe()
			if short.WindowNs > 0 {
				short.WindowNs = 1e9
			} else {
				short.Rate.PerNs = 1e6
			}
			require.EqualValues(t, 1, b.take(short, 5).Allowed)
			denied := b.take(l, 5)
			require.Zero(t, denied.Allowed)
			b.nowNs += denied.RetryMs*1e6 - 1e6
			require.Zero(t, b.take(l, 5).Allowed, "the request must not be admitted early")
			b.nowNs += 1e6
			require.EqualValues(t, 1, b.take(l, 5).Allowed, "the request must not be admitted late")
		})
	}
}

// TestTrapRaisedLimitTakesEffectWithDebt checks the same for a request that may go into debt. The retry time is that of
// the new limit, so the debt must not drain at the rate of the old limit.
func TestTrapRaisedLimitTakesEffectWithDebt(t *testing.T) {
	b := newProbe()
	require.EqualValues(t, 5, b.admits(bucketOf(1, hourNs, 5), 10))
	op := engine.Op{Limit: bucketOf(1, 1e6, 5), Cost: 12, WaitNs: 10e6}
	denied := b.do(op)
	require.Zero(t, denied.Allowed)
	require.EqualValues(t, 2, denied.RetryMs)
	b.nowNs += denied.RetryMs * 1e6
	require.EqualValues(t, 1, b.do(op).Allowed)
}
