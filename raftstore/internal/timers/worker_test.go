package timers_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/raftstore/internal/timers"
)

// worked is a worker whose goroutines and calls a test counts.
type worked struct {
	*timers.Worker
	tasks          sync.WaitGroup
	started, calls atomic.Int64
	running        atomic.Int64
	stop           chan struct{}
	during         func() // runs at the end of each call
}

func newWorked() *worked {
	w := &worked{stop: make(chan struct{}), during: func() {}}
	w.Worker = timers.NewWorker(func(run func()) bool {
		w.started.Add(1)
		w.running.Add(1)
		w.tasks.Go(func() {
			run()
			w.running.Add(-1)
		})
		return true
	}, w.stop, func() {
		w.calls.Add(1)
		w.during()
	})
	return w
}

// TestAWorkerInUseKeepsItsGoroutine checks that one goroutine carries out all calls of a worker in use, and that it
// ends when the worker is not in use. The next call starts another.
func TestAWorkerInUseKeepsItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorked()
		for i := range 10 {
			w.Wake()
			synctest.Wait()
			require.EqualValues(t, i+1, w.calls.Load())
			w.Rest()
			synctest.Wait()
		}
		require.EqualValues(t, 1, w.started.Load())
		require.EqualValues(t, 1, w.running.Load())
		w.Rest()
		synctest.Wait()
		require.Zero(t, w.running.Load())
		w.Wake()
		synctest.Wait()
		require.EqualValues(t, 11, w.calls.Load())
		require.EqualValues(t, 2, w.started.Load())
		close(w.stop)
		w.tasks.Wait()
	})
}

// TestAWorkerDoesARareCall checks that the goroutine of a rare call ends after it.
func TestAWorkerDoesARareCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorked()
		w.Once()
		synctest.Wait()
		require.EqualValues(t, 1, w.calls.Load())
		require.Zero(t, w.running.Load())
	})
}

// TestAWakeDuringACall checks that a worker which is woken during a call acts once more after it, and not at the same
// time.
func TestAWakeDuringACall(t *testing.T) {
	for name, wake := range map[string]func(*timers.Worker){
		"in use": (*timers.Worker).Wake, "a rare call": (*timers.Worker).Once,
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorked()
			release := make(chan struct{})
			w.during = func() { <-release }
			for range 3 { // the second and the third during the first call
				wake(w.Worker)
				synctest.Wait()
				require.EqualValues(t, 1, w.calls.Load(), name)
			}
			close(release)
			synctest.Wait()
			require.EqualValues(t, 2, w.calls.Load(), name)
			require.EqualValues(t, 1, w.started.Load(), name)
			close(w.stop)
			w.tasks.Wait()
		})
	}
}

// TestAWorkerLosesNoWake checks that a worker acts after every Wake, however the calls of Wake, Once and Rest
// interleave.
func TestAWorkerLosesNoWake(t *testing.T) {
	w := newWorked()
	for i := range 3000 {
		before := w.calls.Load()
		if i%3 == 0 {
			w.Once()
		} else {
			w.Wake()
		}
		w.Rest()
		w.Rest()
		require.Eventually(t, func() bool { return w.calls.Load() > before }, 10*time.Second, time.Microsecond)
	}
	close(w.stop)
	w.tasks.Wait()
	require.Zero(t, w.running.Load())
}

// TestAWorkerThatCannotStart checks that a worker does nothing when no goroutine starts any more.
func TestAWorkerThatCannotStart(t *testing.T) {
	w := timers.NewWorker(func(func()) bool { return false }, nil, func() { t.Error("called") })
	w.Wake()
	w.Rest()
	w.Rest()
}
