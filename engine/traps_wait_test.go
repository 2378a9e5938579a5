package engine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/race"
)

// These tests check that the times in a reply are exact.

// TestTrapCostAboveTheLimitNeverFits checks that a cost which can never fit gets no retry time.
func TestTrapCostAboveTheLimitNeverFits(t *testing.T) {
	forAllOfTen(t, func(t *testing.T, b *probe, l engine.Limit) {
		for range 2 {
			d := b.take(l, 11)
			require.Zero(t, d.Allowed)
			require.EqualValues(t, -1, d.RetryMs)
			b.take(l, 1)
		}
	})
}

// TestTrapResetIsWhatWasUsed checks that the time until the limiter is idle depends on the used units, not on the
// burst.
func TestTrapResetIsWhatWasUsed(t *testing.T) {
	b := newProbe()
	d := b.take(bucketOf(1, 600e6, 10), 1)
	require.EqualValues(t, 600, d.ResetMs)
}

// TestTrapResetIsNotRoundedPastItsEnd checks that a window of ten seconds resets in 10,000 ms, and not in eleven
// seconds.
func TestTrapResetIsNotRoundedPastItsEnd(t *testing.T) {
	b := newProbe()
	require.EqualValues(t, 10_000, b.take(windowOf(engine.SlidingLog, 10e9, 3), 1).ResetMs)
	b.nowNs++
	require.EqualValues(t, 10_000, b.take(windowOf(engine.SlidingLog, 10e9, 3), 0).ResetMs,
		"the reset must be rounded up to a millisecond")
	b.nowNs += 10e9
	d := b.do(engine.Op{Limit: engine.Limit{Algorithm: engine.FixedWindow, Mode: engine.FromFirst,
		WindowNs: 10e9, Max: 3}, Cost: 1})
	require.EqualValues(t, 10_000, d.ResetMs)
}

// TestTrapWaitsAreNeitherEarlyNorLate checks that every wait is exact. The same request is denied a millisecond
// before its end, and admitted at its end.
func TestTrapWaitsAreNeitherEarlyNorLate(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	forAllOfTen(t, func(t *testing.T, b *probe, l engine.Limit) {
		for i := range int64(500) {
			b.nowNs += i * 7_654_321
			b.admits(l, 3)
			op := engine.Op{Limit: l, Cost: 1 + i%10, Text: []byte("late"), Dry: true}
			d := b.do(op)
			if d.RetryMs > 0 && d.Allowed == 0 {
				b.nowNs += (d.RetryMs - 1) * 1e6
				require.Zero(t, b.do(op).Allowed, "ask %d", i)
				b.nowNs += 1e6
				require.EqualValues(t, 1, b.do(op).Allowed, "ask %d", i)
			}
		}
	})
}
