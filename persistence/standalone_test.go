package persistence

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/weir-project/weir/engine"
)

// nodeOptions returns options of a node on fs that flushes only on request.
func nodeOptions(t *testing.T, fs vfs.FS, src *fakeSource) Options {
	return Options{
		DataDir: dataDir, FS: fs, Logger: quiet, OnFatal: mustNotStop(t), Source: src,
		MaxDowntimeCredit: 24 * time.Hour, FlushEvery: time.Hour,
	}
}

func mustStart(t *testing.T, o Options) *Node {
	t.Helper()
	n, err := Open(o)
	require.NoError(t, err)
	return n
}

func decide(t *testing.T, n *Node, op engine.Op) engine.Decision {
	t.Helper()
	out := make([]engine.Decision, 1)
	require.NoError(t, n.Decide([]engine.Op{op}, out))
	return out[0]
}

// takes returns one operation of every algorithm, each on a key of its own.
func takes(wallNs int64) []engine.Op {
	minute := int64(time.Minute)
	limits := []engine.Limit{
		{Algorithm: engine.TokenBucket, Rate: engine.Rate{Units: 1, PerNs: minute}, Max: 10},
		{Algorithm: engine.LeakyBucket, Rate: engine.Rate{Units: 1, PerNs: minute}, Max: 10},
		{Algorithm: engine.FixedWindow, Mode: engine.Aligned, WindowNs: 24 * 60 * minute, Max: 10},
		{Algorithm: engine.FixedWindow, Mode: engine.FromFirst, WindowNs: minute, Max: 10},
		{Algorithm: engine.FixedWindow, Mode: engine.Month, Max: 10},
		{Algorithm: engine.FixedWindow, Mode: engine.Forever, Max: 10},
		{Algorithm: engine.SlidingLog, WindowNs: 5 * minute, Max: 10},
		{Algorithm: engine.SlidingCounter, WindowNs: 5 * minute, Max: 10},
		{Algorithm: engine.Concurrency, Max: 10},
		{
			Algorithm: engine.Strike, WindowNs: 15 * minute, Max: 9,
			Steps: engine.MakeSteps(
				[]engine.Step{{Threshold: 2, PenaltyNs: minute}, {Threshold: 9, PenaltyNs: 5 * minute}}),
		},
	}
	var ops []engine.Op
	for i, limit := range limits {
		op := engine.Op{Code: engine.OpTake, Key: fmt.Appendf(nil, "key-%d", i), Limit: limit, Cost: 1}
		if limit.Algorithm == engine.Concurrency {
			op.Text, op.TTLNs = []byte("holder"), 10*minute
		}
		if limit.Mode == engine.Month {
			op.Calendar = &engine.Calendar{EndNs: wallNs + 1e15, NextEndNs: wallNs + 2e15}
		}
		ops = append(ops, op)
	}
	return append(ops,
		engine.Op{Code: engine.OpIncr, Key: []byte("counter"),
			Incr: &engine.Incr{By: 5, Lower: -100, Upper: 100, Expire: engine.ExpireIn, ExpireNs: minute}},
		engine.Op{Code: engine.OpScript, Key: []byte("script"),
			Script: &engine.Script{ID: engine.RedisRateAllowN, Args: [engine.MaxScriptArgs]float64{10, 1, 7, 1}}},
		engine.Op{Code: engine.OpBlock, Key: []byte("blocked"), TTLNs: 10 * minute, Text: []byte("abuse")},
	)
}

// look returns the description of every key of a node.
func look(n *Node) map[string]engine.Info {
	var keys []string
	for cursor := uint64(0); ; {
		cursor = n.Scan(cursor, 100, func(key []byte, _ engine.Algorithm) { keys = append(keys, string(key)) })
		if cursor == 0 {
			break
		}
	}
	state := map[string]engine.Info{}
	for _, key := range keys {
		if info, ok := n.Inspect([]byte(key)); ok {
			info.Bytes = 0 // the size may differ, because entries in a loaded table may have shorter slots
			state[key] = info
		}
	}
	return state
}

func TestDowntimeIsGivenBack(t *testing.T) {
	bucket := engine.Op{Key: []byte("k"), Cost: 10, Limit: engine.Limit{
		Algorithm: engine.TokenBucket, Rate: engine.Rate{Units: 1, PerNs: int64(time.Second)}, Max: 10,
	}}
	fs, src := vfs.NewMem(), &fakeSource{wall: noon}
	n := mustStart(t, nodeOptions(t, fs, src))
	require.EqualValues(t, 1, decide(t, n, bucket).Allowed)
	require.NoError(t, n.Close())

	src.step(4 * time.Second) // a downtime, after which the monotonic clock may have any value
	src.monoNs = 99
	n = mustStart(t, nodeOptions(t, fs, src))
	bucket.Cost = 0
	require.EqualValues(t, 4, decide(t, n, bucket).Remaining)
	require.NoError(t, n.Close())

	src.step(-time.Hour)
	n = mustStart(t, nodeOptions(t, fs, src))
	require.EqualValues(t, 4, decide(t, n, bucket).Remaining,
		"a clock that went back must give no credit and lose nothing")
	require.NoError(t, n.Close())
}

// TestSaveCoversWhatCameBefore checks that Save includes everything that was decided before the call. Many callers
// save at once, and decisions continue.
func TestSaveCoversWhatCameBefore(t *testing.T) {
	fs, src := vfs.NewCrashableMem(), &fakeSource{wall: noon}
	o := nodeOptions(t, fs, src)
	o.FlushEvery = time.Millisecond
	n := mustStart(t, o)
	limit := engine.Limit{Algorithm: engine.FixedWindow, Mode: engine.Forever, Max: engine.MaxUnits}
	var mu sync.Mutex
	var crashes []*vfs.MemFS
	var wants []map[string]int64
	var workers sync.WaitGroup
	for w := range 8 {
		workers.Go(func() {
			key := fmt.Sprintf("worker-%d", w)
			out := make([]engine.Decision, 1)
			for i := range int64(20) {
				_ = n.Decide([]engine.Op{{Key: []byte(key), Cost: 1, Limit: limit}}, out)
				if err := n.Save(); err != nil {
					t.Error(err)
				}
				if i%5 == 0 {
					clone := fs.CrashClone(vfs.CrashCloneCfg{})
					mu.Lock()
					crashes, wants = append(crashes, clone), append(wants, map[string]int64{key: i + 1})
					mu.Unlock()
				}
			}
		})
	}
	workers.Wait()
	require.NoError(t, n.Close())
	for i, crash := range crashes {
		again := mustStart(t, nodeOptions(t, crash, src))
		for key, want := range wants[i] {
			info, _ := again.Inspect([]byte(key))
			require.GreaterOrEqual(t, info.Used, want, key)
		}
		require.NoError(t, again.Close())
	}
}

func TestPeriodicFlushAndLastSave(t *testing.T) {
	fs, src := vfs.NewCrashableMem(), &fakeSource{wall: noon}
	o := nodeOptions(t, fs, src)
	o.FlushEvery = time.Millisecond
	n := mustStart(t, o)
	decide(t, n, takes(noon)[0])
	require.Eventually(t, func() bool {
		crash, err := Open(nodeOptions(t, fs.CrashClone(vfs.CrashCloneCfg{}), src))
		require.NoError(t, err)
		defer crash.Close()
		return crash.Len(0) == 1
	}, 10*time.Second, time.Millisecond)
	require.WithinDuration(t, time.Now(), n.LastSave(), time.Minute)
	require.NoError(t, n.Close())
}

func TestWithoutADisk(t *testing.T) {
	n := mustStart(t, Options{Logger: quiet})
	decide(t, n, takes(noon)[0])
	require.EqualValues(t, 1, n.Len(0))
	require.NoError(t, n.table.Drain(chunkEntries, func([]engine.Change) error {
		t.Error("a table that is never saved must not collect changes")
		return nil
	}))
	require.ErrorIs(t, n.Save(), ErrNoDisk)
	require.True(t, n.LastSave().IsZero())
	require.False(t, n.Advance(time.Second))
	require.Equal(t, "key-0", string(n.RandomKey(0)))
	require.EqualValues(t, 1, n.Stats().Keys)
	require.NoError(t, n.Clear())
	require.Zero(t, n.Len(0))
	require.NoError(t, n.Close())
	require.NoError(t, n.Close(), "a second Close must succeed")
}

func TestClosedNode(t *testing.T) {
	n := mustStart(t, nodeOptions(t, vfs.NewMem(), &fakeSource{wall: noon}))
	require.NoError(t, n.Close())
	require.ErrorIs(t, n.Save(), ErrClosed)
	require.ErrorIs(t, n.Clear(), ErrClosed)
}

func TestTestClockSurvivesAndDoesNotMix(t *testing.T) {
	fs, src := vfs.NewMem(), &fakeSource{wall: noon}
	o := nodeOptions(t, fs, src)
	o.TestClock = true
	n := mustStart(t, o)
	require.True(t, n.Advance(time.Hour))
	then := n.Now()
	require.NoError(t, n.Close())
	src.pass(time.Hour)
	n = mustStart(t, o)
	require.Equal(t, then, n.Now(), "real time must not advance the test clock")
	require.NoError(t, n.Close())

	_, err := Open(nodeOptions(t, fs, src))
	require.ErrorIs(t, err, ErrClockKind)
	require.ErrorContains(t, err, `data directory "data"`)
}

// TestAFailingDiskStopsTheNode checks that a failing disk stops the node during the flush, so no later Save returns.
func TestAFailingDiskStopsTheNode(t *testing.T) {
	mem := vfs.NewMem()
	var broken atomic.Bool
	fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if broken.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			return errors.New("input/output error")
		}
		return nil
	}))
	stopped := make(chan error, 4)
	hang := make(chan struct{})
	o := nodeOptions(t, fs, &fakeSource{wall: noon})
	o.OnFatal = func(err error) { stopped <- err; <-hang }
	n := mustStart(t, o)
	decide(t, n, takes(noon)[0])
	require.NoError(t, n.Save())
	broken.Store(true)
	decide(t, n, takes(noon)[0])
	saved := make(chan error, 1)
	go func() { saved <- n.Save() }()
	require.ErrorIs(t, <-stopped, ErrDisk)
	select {
	case err := <-saved:
		t.Fatalf("Save returned %v", err)
	default:
	}
}

// TestRestartsCannotBeObserved checks that a node which is saved, crashed and restarted gives the same answers as a
// node that never stops.
func TestRestartsCannotBeObserved(t *testing.T) {
	for seed := range uint64(3) {
		rng := rand.New(rand.NewPCG(seed, 11))
		src := &fakeSource{wall: noon}
		fs := vfs.NewCrashableMem()
		steady := mustStart(t, Options{Logger: quiet, Source: src, FlushEvery: time.Hour})
		n := mustStart(t, nodeOptions(t, fs, src))
		text := &engine.Script{ID: engine.TextSet}
		text.Values[0] = []byte(strings.Repeat("\x00 state \xff", 500))
		ops := append(takes(noon), engine.Op{Code: engine.OpScript, Key: []byte("text"), Script: text},
			engine.Op{Code: engine.OpScript, Key: []byte("text"), Script: &engine.Script{ID: engine.TextTake}})
		for i := range 3000 {
			src.pass(time.Duration(rng.Int64N(int64(5 * time.Second))))
			op := ops[rng.IntN(len(ops))]
			op.Key = fmt.Appendf(slices.Clip(op.Key), "-%d", rng.IntN(3))
			op.Cost = rng.Int64N(3)
			require.Equal(t, decide(t, steady, op), decide(t, n, op), "seed %d, step %d", seed, i)
			switch rng.IntN(300) {
			case 0:
				require.NoError(t, n.Close())
				n = mustStart(t, nodeOptions(t, fs, src))
			case 1:
				require.NoError(t, n.Save())
				crash := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rng})
				require.NoError(t, n.Close())
				fs = crash
				n = mustStart(t, nodeOptions(t, fs, src))
			}
		}
		require.Equal(t, look(steady), look(n))
		require.NoError(t, errors.Join(steady.Close(), n.Close()))
	}
}

func TestNoGoroutineOutlivesANode(t *testing.T) {
	// Other tests leave goroutines behind, of stores whose disk they made fail.
	before := goleak.IgnoreCurrent()
	n := mustStart(t, nodeOptions(t, vfs.NewMem(), &fakeSource{wall: noon}))
	require.NoError(t, n.Close())
	goleak.VerifyNone(t, before)
}
