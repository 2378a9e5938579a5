package persistence

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
)

func TestClearIsForGood(t *testing.T) {
	fs, src := vfs.NewCrashableMem(), &fakeSource{wall: noon}
	n := mustStart(t, nodeOptions(t, fs, src))
	for _, op := range takes(noon) {
		decide(t, n, op)
	}
	require.NoError(t, n.Save())
	require.NoError(t, n.Clear())
	require.Zero(t, n.Len(0))
	decide(t, n, takes(noon)[0])
	require.NoError(t, n.Save())
	crash := fs.CrashClone(vfs.CrashCloneCfg{})
	require.NoError(t, n.Close())
	require.ErrorIs(t, n.Clear(), ErrClosed)

	again := mustStart(t, nodeOptions(t, crash, src))
	require.EqualValues(t, 1, again.Len(0))
	require.NoError(t, again.Close())
}

// TestClearDatabaseIsForGood checks that a crash after FLUSHDB brings no key of the database back, and takes no other.
func TestClearDatabaseIsForGood(t *testing.T) {
	fs, src := vfs.NewCrashableMem(), &fakeSource{wall: noon}
	n := mustStart(t, nodeOptions(t, fs, src))
	others := int64(0)
	for _, op := range takes(noon) {
		decide(t, n, op)
		op.Key = engine.AppendStored(nil, 5, op.Key)
		decide(t, n, op)
		others++
	}
	require.Equal(t, others, n.Len(0))
	require.Equal(t, others, n.Len(5))
	require.NoError(t, n.Save())
	require.NoError(t, n.ClearDatabase(0))
	crash := fs.CrashClone(vfs.CrashCloneCfg{})
	require.NoError(t, n.Close())
	require.ErrorIs(t, n.ClearDatabase(5), ErrClosed)

	again := mustStart(t, nodeOptions(t, crash, src))
	require.Zero(t, again.Len(0))
	require.Equal(t, others, again.Len(5))
	require.NoError(t, again.Close())
}

// TestACrashWhileClearingKeepsPolicies checks that a crash during Clear leaves either all entries or only the policies.
func TestACrashWhileClearingKeepsPolicies(t *testing.T) {
	mem, src := vfs.NewCrashableMem(), &fakeSource{wall: noon}
	var crashes []*vfs.MemFS
	var clearing atomic.Bool
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(1, 5))
	n := busyNode(t, onWrites(mem, func() error {
		mu.Lock() // Pebble also writes in the background
		defer mu.Unlock()
		for percent := 0; clearing.Load() && percent <= 100; percent += 50 {
			crashes = append(crashes, mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng}))
		}
		return nil
	}), src)
	require.NoError(t, n.Save())
	before := n.Len(0)
	clearing.Store(true)
	require.NoError(t, n.Clear())
	crashes = append(crashes, mem.CrashClone(vfs.CrashCloneCfg{}))
	clearing.Store(false)
	require.NoError(t, n.Close())

	found := map[int64]int{}
	for i, crash := range crashes {
		again := mustStart(t, nodeOptions(t, crash, src))
		require.NotNil(t, again.Policies().Get([]byte("user")), "crash %d of %d", i, len(crashes))
		found[again.Len(0)]++
		require.NoError(t, again.Close())
	}
	require.Len(t, found, 2)
	require.Positive(t, found[0])
	require.Positive(t, found[before])
}

// TestCloseWaitsForTheDisk checks that a backup or a Clear during Close ends before Close returns, or is refused.
func TestCloseWaitsForTheDisk(t *testing.T) {
	for range 200 {
		n := busyNode(t, vfs.NewMem(), &fakeSource{wall: noon})
		var all sync.WaitGroup
		for _, use := range []func() error{n.Clear, func() error {
			b, err := n.Backup()
			if err == nil {
				err = b.Close()
			}
			return err
		}} {
			all.Go(func() {
				for {
					if err := use(); err != nil {
						assert.ErrorIs(t, err, ErrClosed)
						return
					}
				}
			})
		}
		require.NoError(t, n.Close())
		all.Wait()
	}
}
