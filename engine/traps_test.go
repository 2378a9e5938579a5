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

// TestTrapTwiceTheBurstAfterAnIdleSpell checks how many units a bucket admits after an idle time, also if that is a
// nanosecond below a whole number of seconds. A GCRA whose theoretical arrival time lies in the past would admit nearly
// two bursts.
func TestTrapTwiceTheBurstAfterAnIdleSpell(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	for _, burst := range []int64{5, 10, 100} {
		for idle := int64(0); idle <= 2*burst; idle++ {
			for _, lessNs := range []int64{0, 1} {
				b := newProbe()
				l := bucketOf(1, 1e9, burst)
				require.EqualValues(t, 1, b.take(l, 1).Allowed)
				b.nowNs += max(0, idle*1e9-lessNs)
				have := burst
				if idle == 0 || idle == 1 && lessNs == 1 {
					have = burst - 1
				}
				require.EqualValues(t, have, b.admits(l, int(3*burst)), "burst %d, idle %d", burst, idle)
			}
		}
	}
}

// TestTrapCostIsCheckedBeforeItIsTaken checks that a large cost never exceeds the limit. A limiter that compares
// before it adds would admit it.
func TestTrapCostIsCheckedBeforeItIsTaken(t *testing.T) {
	forAllOfTen(t, func(t *testing.T, b *probe, l engine.Limit) {
		require.EqualValues(t, 1, b.take(l, 6).Allowed)
		over := engine.Op{Limit: l, Cost: 5, Text: []byte("other"), TTLNs: 60e9}
		d := b.do(over)
		require.Zero(t, d.Allowed)
		require.EqualValues(t, 4, d.Remaining)
		over.Cost = 4
		require.EqualValues(t, 1, b.do(over).Allowed)
	})
}

// TestTrapDeniedTakesNothing checks that a denied request does not count. Otherwise a persistent caller would be
// locked out for ever.
func TestTrapDeniedTakesNothing(t *testing.T) {
	forAllOfTen(t, func(t *testing.T, b *probe, l engine.Limit) {
		require.EqualValues(t, 10, b.admits(l, 10))
		first := b.do(engine.Op{Limit: l, Cost: 1, Text: []byte("late"), TTLNs: 60e9})
		require.Zero(t, first.Allowed)
		for range 1000 {
			require.Equal(t, first, b.do(engine.Op{Limit: l, Cost: 1, Text: []byte("late"), TTLNs: 60e9}))
		}
		if first.RetryMs < 0 {
			return
		}
		startNs := b.nowNs
		for part := range int64(100) {
			b.nowNs = startNs + first.RetryMs*1e6*part/100
			require.Zero(t, b.admits(l, 1))
		}
		b.nowNs = startNs + first.RetryMs*1e6
		require.EqualValues(t, 1, b.admits(l, 1), "the key must be admitted as soon as without the denied requests")
	})
}

// TestTrapPersistentCallerIsServed checks that every window admits its maximum although a caller asks without pause.
func TestTrapPersistentCallerIsServed(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	for _, a := range []engine.Algorithm{engine.SlidingLog, engine.FixedWindow} {
		b := newProbe()
		admitted := int64(0)
		for range 100_000 {
			admitted += b.take(windowOf(a, 1e9, 10), 1).Allowed
			b.nowNs += 1e6
		}
		require.EqualValues(t, 1000, admitted, "%v", a)
	}
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

// TestTrapLookingCreatesNothing checks that looks and dry runs do not create an entry for an idle key.
func TestTrapLookingCreatesNothing(t *testing.T) {
	forAllOfTen(t, func(t *testing.T, b *probe, l engine.Limit) {
		d := b.take(l, 0)
		require.EqualValues(t, 1, d.Allowed)
		require.EqualValues(t, 10, d.Remaining)
		require.Zero(t, d.ResetMs)
		require.EqualValues(t, 1, b.do(engine.Op{Limit: l, Cost: 1, Dry: true, Text: []byte("x")}).Allowed)
		require.Zero(t, b.table.Len(engine.Stamp{NowNs: b.nowNs}))
	})
}

// TestALateCopyChangesNothing checks a late copy of a request that the client repeated and that was answered. With an
// ID the copy changes nothing, whatever the answer was.
func TestALateCopyChangesNothing(t *testing.T) {
	table := engine.NewTable(engine.Options{})
	do := func(op engine.Op) engine.Decision {
		out := make([]engine.Decision, 1)
		table.Decide(engine.Stamp{NowNs: 1}, []engine.Op{op}, out)
		return out[0]
	}
	quota := engine.Limit{Algorithm: engine.FixedWindow, Mode: engine.Forever, Max: 10}
	take := func(n int64, id string) engine.Op {
		return engine.Op{Code: engine.OpTake, Key: []byte("k"), Limit: quota, Cost: n, ID: []byte(id)}
	}
	refund := engine.Op{Code: engine.OpRefund, Key: []byte("k"), Cost: 2, ID: []byte("back")}
	require.EqualValues(t, -1, do(refund).Remaining, "there is nothing to refund")
	do(take(8, ""))
	require.EqualValues(t, -1, do(refund).Remaining, "the copy must get the same answer")
	require.EqualValues(t, 2, do(take(0, "")).Remaining)

	require.Zero(t, do(take(3, "late")).Allowed)
	do(engine.Op{Code: engine.OpReset, Key: []byte("k")})
	require.Zero(t, do(take(3, "late")).Allowed, "the copy of a denied request must be denied")
	require.EqualValues(t, 10, do(take(0, "")).Remaining)

	do(take(1, ""))
	other := engine.Op{Code: engine.OpTake, Key: []byte("k"),
		Limit: engine.Limit{Algorithm: engine.Concurrency, Max: 1}, Cost: 1, Text: []byte("h"), ID: []byte("wrong")}
	require.Equal(t, engine.WrongType, do(other).Status)
	do(engine.Op{Code: engine.OpReset, Key: []byte("k")})
	require.Equal(t, engine.WrongType, do(other).Status, "the copy of a refused request must be refused")
}
