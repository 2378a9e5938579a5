package engine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/race"
)

// Each test here names a mistake of rate limiters in use, and checks that the engine does not make it.

// TestTrapHalfTokenLostToRounding checks a bucket that is asked every 50 ms at 10/s. A bucket that stores whole
// tokens would never get past half a token.
func TestTrapHalfTokenLostToRounding(t *testing.T) {
	b := newProbe()
	l := bucketOf(1, 100e6, 1)
	for i := range 20_000 {
		require.EqualValues(t, one(i%2 == 0), b.take(l, 1).Allowed, "ask %d", i)
		b.nowNs += 50e6
	}
}

// TestTrapTwoHitsInOneMillisecond checks that a log counts two requests in the same millisecond. A log that names its
// members by the millisecond would merge them.
func TestTrapTwoHitsInOneMillisecond(t *testing.T) {
	b := newProbe()
	l := windowOf(engine.SlidingLog, 60e9, 3)
	require.EqualValues(t, 1, b.take(l, 1).Allowed)
	require.EqualValues(t, 1, b.take(l, 1).Allowed) // the same nanosecond
	b.nowNs += 999
	require.EqualValues(t, 1, b.take(l, 1).Allowed) // the same millisecond
	require.EqualValues(t, 0, b.take(l, 1).Allowed)
	b.nowNs += 60e9 - 999 - 1
	require.EqualValues(t, 0, b.admits(l, 1))
	b.nowNs++
	require.EqualValues(t, 2, b.admits(l, 5), "the first two must have left the window, and the third not")
}

// TestTrapSlidingCounterWeighsWhatIsLeft checks the weight of the previous window: the part of that window which is
// still in the sliding window, and not the part that has left it.
func TestTrapSlidingCounterWeighsWhatIsLeft(t *testing.T) {
	b := newProbe()
	l := windowOf(engine.SlidingCounter, 60e9, 100)
	b.nowNs -= b.nowNs % 60e9
	require.EqualValues(t, 1, b.take(l, 100).Allowed)
	b.nowNs += 60e9 + 15e9 // a quarter into the next window, so 75 still count
	require.EqualValues(t, 25, b.take(l, 0).Remaining)
	require.EqualValues(t, 25, b.admits(l, 100))
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
