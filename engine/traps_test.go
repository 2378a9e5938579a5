package engine_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
)

// Each test here names a mistake that rate limiters in use have made, and shows
// that this one does not make it.

// probe is a table on which one limit is asked at chosen times.
type probe struct {
	table   *engine.Table
	nowNs   int64
	holders int // so that every acquire is by another one
}

func newProbe() *probe {
	return &probe{table: engine.NewTable(engine.Options{Shards: 1}), nowNs: 1_700_000_000e9}
}

func (b *probe) do(op engine.Op) engine.Decision {
	if op.Key == nil {
		op.Key = []byte("key")
	}
	return decideOne(b.table, step{engine.Stamp{NowNs: b.nowNs}, op})
}

func (b *probe) take(l engine.Limit, n int64) engine.Decision {
	b.holders++
	return b.do(engine.Op{Limit: l, Cost: n, Text: fmt.Append(nil, b.holders), TTLNs: 60e9})
}

// admits asks n times for one unit at one instant and counts the admitted.
func (b *probe) admits(l engine.Limit, n int) (admitted int64) {
	for range n {
		admitted += b.take(l, 1).Allowed
	}
	return admitted
}

func bucketOf(units, perNs, burst int64) engine.Limit {
	return engine.Limit{Algorithm: engine.TokenBucket, Rate: engine.Rate{Units: units, PerNs: perNs}, Max: burst}
}

func windowOf(a engine.Algorithm, windowNs, most int64) engine.Limit {
	return engine.Limit{Algorithm: a, WindowNs: windowNs, Max: most}
}

// allOfTen is each algorithm that counts, with room for ten.
var allOfTen = []engine.Limit{
	bucketOf(1, 6e9, 10),
	{Algorithm: engine.LeakyBucket, Rate: engine.Rate{Units: 1, PerNs: 6e9}, Max: 9},
	windowOf(engine.FixedWindow, 60e9, 10),
	{Algorithm: engine.FixedWindow, Mode: engine.FromFirst, WindowNs: 60e9, Max: 10},
	{Algorithm: engine.FixedWindow, Mode: engine.Forever, Max: 10},
	windowOf(engine.SlidingLog, 60e9, 10),
	windowOf(engine.SlidingCounter, 60e9, 10),
	windowOf(engine.Concurrency, 0, 10),
}

func forAllOfTen(t *testing.T, test func(t *testing.T, b *probe, l engine.Limit)) {
	for _, l := range allOfTen {
		t.Run(fmt.Sprintf("%v/%d", l.Algorithm, l.Mode), func(t *testing.T) { test(t, newProbe(), l) })
	}
}

// A bucket that stores whole tokens at every ask never gets past the half it
// had: asked every 50 ms at 10/s it would starve.
func TestTrapHalfTokenLostToRounding(t *testing.T) {
	b := newProbe()
	l := bucketOf(1, 100e6, 1)
	for i := range 20_000 {
		require.EqualValues(t, one(i%2 == 0), b.take(l, 1).Allowed, "ask %d", i)
		b.nowNs += 50e6
	}
}

// A log that names its members by the millisecond merges two hits in one.
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
	require.EqualValues(t, 2, b.admits(l, 5), "the first two have left, the third has not")
}

// A stored arrival time clamped to an instant before now hands out nearly two
// bursts after an idle spell just under the burst.
func TestTrapTwiceTheBurstAfterAnIdleSpell(t *testing.T) {
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

// A limiter that asks "used >= max?" before it adds lets a large cost overshoot.
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

// A denied request that is counted locks a persistent caller out for ever.
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
		require.EqualValues(t, 1, b.admits(l, 1), "as soon as if it had not asked")
	})
}

// Hammered without pause, a window still admits its maximum in every window.
func TestTrapPersistentCallerIsServed(t *testing.T) {
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

// A cost that can never fit needs another answer than "retry later".
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

// The time until the limiter is idle is that of what was used, not of the burst.
func TestTrapResetIsWhatWasUsed(t *testing.T) {
	b := newProbe()
	d := b.take(bucketOf(1, 600e6, 10), 1)
	require.EqualValues(t, 600, d.ResetMs)
}

// A window of ten seconds resets in 10,000 ms, not in eleven seconds.
func TestTrapResetIsNotRoundedPastItsEnd(t *testing.T) {
	b := newProbe()
	require.EqualValues(t, 10_000, b.take(windowOf(engine.SlidingLog, 10e9, 3), 1).ResetMs)
	b.nowNs++
	require.EqualValues(t, 10_000, b.take(windowOf(engine.SlidingLog, 10e9, 3), 0).ResetMs, "rounded up")
	b.nowNs += 10e9
	d := b.do(engine.Op{Limit: engine.Limit{Algorithm: engine.FixedWindow, Mode: engine.FromFirst, WindowNs: 10e9, Max: 3}, Cost: 1})
	require.EqualValues(t, 10_000, d.ResetMs)
}

// An emission interval in whole milli- or microseconds breaks high rates.
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

// The largest rate and burst neither do nothing nor wrap.
func TestTrapLargestArguments(t *testing.T) {
	b := newProbe()
	l := bucketOf(engine.MaxUnits, 1, engine.MaxUnits)
	require.EqualValues(t, 1, b.take(l, engine.MaxUnits).Allowed)
	require.EqualValues(t, 0, b.take(l, 1).Allowed)
	b.nowNs++
	require.EqualValues(t, 1, b.take(l, engine.MaxUnits).Allowed)

	slow := engine.Op{Key: []byte("slow"), Limit: bucketOf(1, engine.MaxWindowNs, engine.MaxUnits), Cost: engine.MaxUnits}
	require.EqualValues(t, 1, b.do(slow).Allowed)
	d := b.do(slow)
	require.Zero(t, d.Allowed)
	require.Positive(t, d.RetryMs, "saturated, not wrapped")
	require.Positive(t, d.ResetMs)
}

// A clock that steps back must not lock callers out, nor give anything.
func TestTrapClockStepsBack(t *testing.T) {
	forAllOfTen(t, func(t *testing.T, b *probe, l engine.Limit) {
		require.EqualValues(t, 10, b.admits(l, 10))
		b.nowNs += 1e9
		last := b.do(engine.Op{Limit: l, Cost: 1, Text: []byte("x")})
		require.Zero(t, last.Allowed)
		b.nowNs -= 2 * dayNs
		require.Equal(t, last, b.do(engine.Op{Limit: l, Cost: 1, Text: []byte("x")}), "an earlier stamp is the last one")
		b.nowNs += 2*dayNs + max(0, last.RetryMs)*1e6
		if last.RetryMs > 0 {
			require.EqualValues(t, 1, b.admits(l, 1))
		}
	})
}

// A maximum of one admits the first request.
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

// The previous window counts with the part of it that is still in sight, not
// with the elapsed part.
func TestTrapSlidingCounterWeighsWhatIsLeft(t *testing.T) {
	b := newProbe()
	l := windowOf(engine.SlidingCounter, 60e9, 100)
	b.nowNs -= b.nowNs % 60e9
	require.EqualValues(t, 1, b.take(l, 100).Allowed)
	b.nowNs += 60e9 + 15e9 // a quarter into the next window: 75 still count
	require.EqualValues(t, 25, b.take(l, 0).Remaining)
	require.EqualValues(t, 25, b.admits(l, 100))
}

// Raising a limit helps at once, however often the caller was denied before,
// and lowering it forgets nothing that was used.
func TestTrapLimitChangesKeepUsage(t *testing.T) {
	forAllOfTen(t, func(t *testing.T, b *probe, l engine.Limit) {
		require.EqualValues(t, 10, b.admits(l, 50))
		wider, tighter := l, l
		wider.Max, tighter.Max = l.Max+5, l.Max-5
		if l.Algorithm == engine.TokenBucket {
			// A bucket keeps its tokens, of which there are none.
			require.EqualValues(t, 0, b.admits(wider, 50))
			return
		}
		require.EqualValues(t, 5, b.admits(wider, 50))
		require.EqualValues(t, 0, b.take(tighter, 1).Allowed)
		require.EqualValues(t, 0, b.take(tighter, 1).Remaining)
	})
}

// Looking, and a dry run, leave an idle key absent.
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

// A retried acquire by the same holder is a renewal and takes no second slot.
func TestTrapRetriedAcquireTakesOneSlot(t *testing.T) {
	b := newProbe()
	l := windowOf(engine.Concurrency, 0, 2)
	for range 5 {
		d := b.do(engine.Op{Limit: l, Cost: 1, Text: []byte("worker 7"), TTLNs: 60e9})
		require.EqualValues(t, 1, d.Allowed)
		require.EqualValues(t, 1, d.Remaining)
	}
	b.nowNs += 60e9
	require.Zero(t, b.table.Len(engine.Stamp{NowNs: b.nowNs}), "an abandoned lease frees itself")
}

// Leases on one key are bounded, with an answer of their own.
func TestTrapTooManyHolders(t *testing.T) {
	skipUnderRace(t)
	b := newProbe()
	l := windowOf(engine.Concurrency, 0, 2*engine.MaxHolders)
	require.EqualValues(t, engine.MaxHolders, b.admits(l, engine.MaxHolders))
	require.Equal(t, engine.Decision{Status: engine.TooManyHolders}, b.take(l, 1))
	again := b.do(engine.Op{Limit: l, Cost: 1, TTLNs: 60e9, Text: []byte("7")})
	require.EqualValues(t, 1, again.Allowed, "a renewal needs no room")
}

// A request that was sent again after a lost reply counts once.
func TestTrapRetriedRequestCountsOnce(t *testing.T) {
	forAllOfTen(t, func(t *testing.T, b *probe, l engine.Limit) {
		op := engine.Op{Limit: l, Cost: 4, ID: []byte("token"), Text: []byte("x"), TTLNs: 600e9}
		first := b.do(op)
		for range 10 {
			b.nowNs += 5e9
			require.Equal(t, first, b.do(op))
		}
		refund := engine.Op{Code: engine.OpRefund, Cost: 1, ID: []byte("another")}
		back := b.do(refund)
		require.Equal(t, back, b.do(refund))
	})
}

// Strikes: the count that reaches a threshold blocks, and each step blocks longer.
func TestTrapStrikePenaltiesGrow(t *testing.T) {
	b := newProbe()
	steps := engine.MakeSteps([]engine.Step{{Threshold: 4, PenaltyNs: 2e9}, {Threshold: 6, PenaltyNs: 5e9}, {Threshold: 11, PenaltyNs: 900e9}})
	l := engine.Limit{Algorithm: engine.Strike, WindowNs: 900e9, Max: 11, Steps: steps}
	wantMs := map[int]int64{4: 2000, 6: 5000, 11: 900_000}
	for i := 1; i <= 11; i++ {
		d := b.take(l, 1)
		require.Equal(t, wantMs[i], d.RetryMs, "strike %d", i)
		require.EqualValues(t, one(wantMs[i] == 0), d.Allowed)
		require.EqualValues(t, 11-i, d.Remaining)
		require.EqualValues(t, one(wantMs[i] == 0), b.take(l, 0).Allowed, "a look before the attempt")
		b.nowNs += wantMs[i] * 1e6
	}
}

// An increment out of bounds changes neither the value nor its time to live.
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
	require.Equal(t, engine.Decision{Allowed: 1, Remaining: 1}, b.do(op), "it has expired on its first time")
}

// Every wait is exact: the same request is denied a millisecond before it, and
// admitted at its end.
func TestTrapWaitsAreNeitherEarlyNorLate(t *testing.T) {
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

// TestTrapRaisedLimitTakesEffect: a key that used up a slow limit and is then asked
// under a fast one is served when the reply says so, though it was denied before.
func TestTrapRaisedLimitTakesEffect(t *testing.T) {
	for _, algorithm := range []engine.Algorithm{engine.TokenBucket, engine.LeakyBucket, engine.FixedWindow, engine.SlidingCounter} {
		t.Run(algorithm.String(), func(t *testing.T) {
			const dayNs = 24 * int64(3600e9)
			slow := engine.Limit{Algorithm: algorithm, Rate: engine.Rate{Units: 1, PerNs: dayNs}, WindowNs: dayNs, Max: 5}
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
			require.Zero(t, ask(fast, 5).Allowed, "not early")
			at.NowNs += 1e6
			require.EqualValues(t, 1, ask(fast, 5).Allowed, "not late")
		})
	}
}

// A denied request that may run into debt is told when it fits under its own
// limit; until then it must not go on draining by the old one.
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

// Looks are not counted, on a blocked key either.
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

// TestCounterIsCounted: an increment is a decision like any other to the totals.
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
