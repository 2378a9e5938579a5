package engine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
)

// These tests cover the edges of valid arguments.

// TestTrapSubMillisecondRates checks high rates. An emission interval in whole milliseconds or microseconds would
// break them.
func TestTrapSubMillisecondRates(t *testing.T) {
	for _, everyNs := range []int64{1, 10, 333, 100_000, 999_999} {
		b := newProbe()
		l := bucketOf(1, everyNs, 1)
		for range 1000 {
			require.EqualValues(t, 1, b.admits(l, 2))
			b.nowNs += everyNs
		}
	}
}

// TestTrapLargestArguments checks that the largest rate and burst work and do not overflow.
func TestTrapLargestArguments(t *testing.T) {
	b := newProbe()
	l := bucketOf(engine.MaxUnits, 1, engine.MaxUnits)
	require.EqualValues(t, 1, b.take(l, engine.MaxUnits).Allowed)
	require.EqualValues(t, 0, b.take(l, 1).Allowed)
	b.nowNs++
	require.EqualValues(t, 1, b.take(l, engine.MaxUnits).Allowed)

	slow := engine.Op{Key: []byte("slow"), Limit: bucketOf(1, engine.MaxWindowNs, engine.MaxUnits),
		Cost: engine.MaxUnits}
	require.EqualValues(t, 1, b.do(slow).Allowed)
	d := b.do(slow)
	require.Zero(t, d.Allowed)
	require.Positive(t, d.RetryMs, "the wait must be saturated and not overflow")
	require.Positive(t, d.ResetMs)
}

// TestTrapClockStepsBack checks that a clock which steps back neither locks callers out nor gives them units.
func TestTrapClockStepsBack(t *testing.T) {
	forAllOfTen(t, func(t *testing.T, b *probe, l engine.Limit) {
		require.EqualValues(t, 10, b.admits(l, 10))
		b.nowNs += 1e9
		last := b.do(engine.Op{Limit: l, Cost: 1, Text: []byte("x")})
		require.Zero(t, last.Allowed)
		b.nowNs -= 2 * dayNs
		require.Equal(t, last, b.do(engine.Op{Limit: l, Cost: 1, Text: []byte("x")}),
			"an earlier stamp must count as the last one")
		b.nowNs += 2*dayNs + max(0, last.RetryMs)*1e6
		if last.RetryMs > 0 {
			require.EqualValues(t, 1, b.admits(l, 1))
		}
	})
}

// TestTrapMaximumOfOne checks that a limit of one admits the first request.
func TestTrapMaximumOfOne(t *testing.T) {
	for _, l := range allOfTen {
		b := newProbe()
		l.Max = 1
		if l.Algorithm == engine.LeakyBucket {
			l.Max = 0
		}
		require.EqualValues(t, 1, b.admits(l, 5), "%v", l.Algorithm)
	}
}
