package persistence

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
)

// history has the state after each complete flush. history[i] is the state of flush number i+1 of the run.
type history []map[string]string

// find returns the last index of the state, or -1 if it is missing.
func (h history) find(state map[string]string) int {
	for i := len(h) - 1; i >= 0; i-- {
		if maps.Equal(h[i], state) {
			return i
		}
	}
	return -1
}

// change makes random changes to a table. The counter n makes every state unique.
func change(rng *rand.Rand, table *fakeTable, n int) {
	table.set("counter", fmt.Sprint(n))
	for range rng.IntN(40) {
		key := fmt.Sprintf("k%02d", rng.IntN(60))
		if rng.IntN(4) == 0 {
			table.remove(key)
		} else {
			table.set(key, fmt.Sprintf("%d-%d", n, rng.Uint64()))
		}
	}
}

// TestCrashKeepsEveryFinishedFlush checks that a crash at any moment leaves the state of one flush: of the last flush
// that returned or of a later one. None, half or all of the unsynced data is on the disk.
func TestCrashKeepsEveryFinishedFlush(t *testing.T) {
	for _, percent := range []int{0, 50, 100} {
		t.Run(fmt.Sprintf("%d%% of unsynced data kept", percent), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(percent), 7))
			fs := vfs.NewCrashableMem()
			s, table := mustOpen(t, fs, dataDir)
			states := history{table.state()}
			var done atomic.Int64
			crashed := make(chan *vfs.MemFS)
			finished := make([]int64, 0, 40)
			go func() { // crashes during flushes
				defer close(crashed)
				rng := rand.New(rand.NewPCG(uint64(percent), 8))
				for range cap(finished) {
					finished = append(finished, done.Load())
					crashed <- fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng})
				}
			}()
			var clones []*vfs.MemFS
			for n := 1; ; n++ {
				change(rng, table, n)
				states = append(states, table.state())
				flush(t, s, table)
				done.Store(int64(n))
				clone, more := <-crashed
				if !more {
					break
				}
				clones = append(clones, clone)
			}
			require.NoError(t, s.Close())
			for i, clone := range clones {
				after, loaded := mustOpen(t, clone, dataDir)
				found := states.find(loaded.state())
				require.GreaterOrEqual(t, int64(found), finished[i], "crash %d", i)
				require.NoError(t, after.Close())
			}
		})
	}
}

// cutShort is a table whose flush ends in its middle.
type cutShort struct {
	*fakeTable
	chunks int // that are handed out
}

var errCutShort = errors.New("the flush is cut short")

func (c cutShort) Drain(_ int, emit func([]engine.Change) error) error {
	return c.fakeTable.Drain(5, func(chunk []engine.Change) error {
		if c.chunks--; c.chunks < 0 {
			return errCutShort
		}
		return emit(chunk)
	})
}

// TestAFlushIsLoadedWholeOrNotAtAll checks that a crash in a flush leaves the state of the flush before it, although
// the disk has some batches of the later one, and that the next run neither loads nor keeps them.
func TestAFlushIsLoadedWholeOrNotAtAll(t *testing.T) {
	fs := vfs.NewCrashableMem()
	s, table := mustOpen(t, fs, dataDir)
	rng := rand.New(rand.NewPCG(5, 9))
	for n := range 30 {
		change(rng, table, n)
		flush(t, s, table)
		whole := table.state()
		for i := range 20 {
			table.set(fmt.Sprintf("k%02d", i), fmt.Sprint(n, "lost"))
		}
		before := s.journal.next
		require.ErrorIs(t, s.Flush(cutShort{table, n % 4}, at, true), errCutShort)
		require.NoError(t, s.db.LogData(nil, pebble.Sync))
		require.Equal(t, n%4 > 0, s.journal.next > before)
		crashed := fs.CrashClone(vfs.CrashCloneCfg{})
		require.NoError(t, s.Close())
		fs = crashed
		s, table = mustOpen(t, fs, dataDir)
		require.Equal(t, whole, table.state(), n)
		if n%3 == 0 { // with nothing written by this run but its first record
			require.NoError(t, s.Close())
			s, table = mustOpen(t, fs, dataDir)
			require.Equal(t, whole, table.state(), n)
		}
	}
	require.NoError(t, s.Close())
}

// TestCrashKeepsNewParentDirectories checks that a crash also keeps every new directory above a data directory.
func TestCrashKeepsNewParentDirectories(t *testing.T) {
	fs := vfs.NewCrashableMem()
	dir := fs.PathJoin("srv", "limits", "weir")
	s, table := mustOpen(t, fs, dir)
	table.set("a", "1")
	flush(t, s, table)
	crash := fs.CrashClone(vfs.CrashCloneCfg{})
	require.NoError(t, s.Close())
	after, loaded := mustOpen(t, crash, dir)
	require.Equal(t, table.state(), loaded.state())
	require.NoError(t, after.Close())
}

// outcome is the result of a run under faults.
type outcome struct {
	finished int // the flushes that returned
	stopped  error
}

// faultRun opens a store, flushes a few times and closes it. The file system may fail at any operation.
func faultRun(t *testing.T, fs vfs.FS, states *history) outcome {
	ended := make(chan outcome, 16)
	finished := new(atomic.Int64)
	onFatal := func(err error) { // a real process would end here
		ended <- outcome{int(finished.Load()), err}
		select {}
	}
	go func() {
		s, table, err := openStore(fs, dataDir, onFatal)
		rng := rand.New(rand.NewPCG(5, 6))
		for n := 1; err == nil && n <= 4; n++ {
			change(rng, table, n)
			*states = append(*states, table.state())
			if err = s.Flush(table, at, true); err == nil {
				finished.Add(1)
			}
		}
		if err == nil {
			err = s.Close()
		}
		ended <- outcome{int(finished.Load()), err}
	}()
	select {
	case o := <-ended:
		return o
	case <-time.After(30 * time.Second):
		t.Fatal("the store hangs on a failing disk")
		return outcome{}
	}
}

// TestEveryWriteMayFail injects an error at the n-th write, for every n. The run must stop with an error, and the
// disk must have every finished flush.
func TestEveryWriteMayFail(t *testing.T) {
	for _, fault := range []error{syscall.ENOSPC, syscall.EIO} {
		for _, once := range []bool{true, false} {
			t.Run(fmt.Sprintf("%v, once %v", fault, once), func(t *testing.T) {
				for n := int64(0); sweepFault(t, fault, n, once); n++ {
				}
			})
		}
	}
}

// sweepFault runs with a fault at write n, and reports whether the run reached it.
func sweepFault(t *testing.T, fault error, n int64, once bool) bool {
	mem := vfs.NewCrashableMem()
	var writes, injected atomic.Int64
	fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
			return nil
		}
		if i := writes.Add(1) - 1; i == n || i > n && !once {
			injected.Add(1)
			return fault
		}
		return nil
	}))
	states := history{{}}
	run := faultRun(t, fs, &states)
	if injected.Load() == 0 {
		require.NoError(t, run.stopped)
		require.Equal(t, 4, run.finished)
		return false
	}
	if run.stopped != nil && run.finished == 0 && errors.Is(run.stopped, ErrDamaged) {
		require.NotErrorIs(t, run.stopped, ErrDamaged, "a failing disk must not count as damage")
	}
	for _, percent := range []int{0, 100} {
		rng := rand.New(rand.NewPCG(uint64(n), 9))
		clone := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng})
		after, loaded, err := openStore(clone, dataDir, mustNotStop(t))
		require.NoError(t, err, "fault at write %d, %d%% kept", n, percent)
		require.GreaterOrEqual(t, states.find(loaded.state()), run.finished, "fault at write %d", n)
		require.NoError(t, after.Close())
	}
	return true
}
