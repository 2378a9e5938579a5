package timers_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/raftstore/internal/timers"
)

// TestALoopKeepsPeriods checks that each check is called once in its period, and not before the first period ends.
func TestALoopKeepsPeriods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loop := timers.NewLoop()
		defer loop.Close()
		var quick, slow atomic.Int64
		checks := timers.Join(loop)
		checks.Every(timers.HousekeepEvery, func() { quick.Add(1) })
		checks.Every(time.Second, func() { slow.Add(1) })
		time.Sleep(timers.HousekeepEvery / 2)
		require.Zero(t, quick.Load())
		time.Sleep(10 * time.Second)
		require.EqualValues(t, 40, quick.Load())
		require.EqualValues(t, 10, slow.Load())
		checks.Leave()
		time.Sleep(time.Second)
		require.EqualValues(t, 40, quick.Load())
	})
}

// TestAHungCheckStopsNoOther checks that a check that hangs delays the others once, by one period. It is not called
// again before it returns, and Leave waits for it.
func TestAHungCheckStopsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loop := timers.NewLoop()
		defer loop.Close()
		var before, after, hung atomic.Int64
		release := make(chan struct{})
		others, group := timers.Join(loop), timers.Join(loop)
		others.Every(timers.HousekeepEvery, func() { before.Add(1) })
		group.Every(timers.HousekeepEvery, func() {
			hung.Add(1)
			<-release
		})
		others.Every(timers.HousekeepEvery, func() { after.Add(1) })
		time.Sleep(10*time.Second + time.Millisecond)
		assert.EqualValues(t, 40, before.Load())
		assert.EqualValues(t, 39, after.Load())
		assert.EqualValues(t, 1, hung.Load())

		left := make(chan struct{})
		go func() {
			group.Leave()
			close(left)
		}()
		synctest.Wait()
		select {
		case <-left:
			require.Fail(t, "Leave returned while a check of the group runs")
		default:
		}
		others.Leave()
		close(release)
		<-left
		require.EqualValues(t, 1, hung.Load())
	})
}

// TestALoopCallsEveryCheckAlthoughPassesAreLate checks that checks that take longer than a period together are still
// called in turn.
func TestALoopCallsEveryCheckAlthoughPassesAreLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loop := timers.NewLoop()
		defer loop.Close()
		checks := timers.Join(loop)
		const all = 8
		var called [all]atomic.Int64
		for i := range all {
			checks.Every(timers.HousekeepEvery, func() {
				called[i].Add(1)
				time.Sleep(timers.HousekeepEvery/4 + time.Millisecond)
			})
		}
		time.Sleep(10 * time.Second)
		for i := range all {
			require.GreaterOrEqual(t, called[i].Load(), int64(10), "check %d", i)
		}
		checks.Leave()
	})
}

// TestACheckThatEndsItsGoroutine checks that such a check is not called again, as after a fatal error in a test, and
// that the others are.
func TestACheckThatEndsItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loop := timers.NewLoop()
		defer loop.Close()
		var ended, other atomic.Int64
		checks := timers.Join(loop)
		checks.Every(timers.HousekeepEvery, func() {
			ended.Add(1)
			runtime.Goexit()
		})
		checks.Every(timers.HousekeepEvery, func() { other.Add(1) })
		time.Sleep(5 * time.Second)
		require.EqualValues(t, 1, ended.Load())
		require.GreaterOrEqual(t, other.Load(), int64(18))
		checks.Leave()
	})
}

// TestGroupsTakeTurns checks that one of several groups carries out a task of the host in each period.
func TestGroupsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loop := timers.NewLoop()
		defer loop.Close()
		var done atomic.Int64
		var groups []*timers.Checks
		for range 3 {
			checks := timers.Join(loop)
			groups = append(groups, checks)
			checks.Every(time.Second, func() {
				if loop.Due("task", time.Second) {
					done.Add(1)
				}
			})
			time.Sleep(timers.HousekeepEvery)
		}
		time.Sleep(10 * time.Second)
		require.InDelta(t, 10, done.Load(), 2)
		groups[0].Leave()
		before := done.Load()
		time.Sleep(10 * time.Second)
		require.InDelta(t, 10, done.Load()-before, 2, "the other groups take the turn of a group that has ended")
		groups[1].Leave()
		groups[2].Leave()
	})
}

// TestSingle checks that one act runs at a time, and that an act that ends its goroutine is the last one.
func TestSingle(t *testing.T) {
	var tasks sync.WaitGroup
	var s timers.Single
	start := func(act func()) bool {
		tasks.Go(act)
		return true
	}
	release := make(chan struct{})
	require.True(t, s.Go(start, func() { <-release }))
	require.True(t, s.Busy())
	require.False(t, s.Go(start, func() { require.Fail(t, "a second act runs") }))
	close(release)
	tasks.Wait()
	require.False(t, s.Busy())
	require.False(t, s.Go(func(func()) bool { return false }, func() {}), "the node closes")
	require.False(t, s.Busy())
	require.True(t, s.Go(start, runtime.Goexit))
	tasks.Wait()
	require.False(t, s.Go(start, func() {}))
}
