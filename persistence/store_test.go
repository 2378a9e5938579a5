package persistence

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
)

func TestFlushOfManyChunksAndLargeEntries(t *testing.T) {
	fs := vfs.NewMem()
	s, table := mustOpen(t, fs, dataDir)
	for i := range 3*chunkEntries + 17 {
		table.set(fmt.Sprintf("k%06d", i), fmt.Sprint(i))
	}
	for i := range 5 {
		table.set(fmt.Sprintf("log%d", i), strings.Repeat("x", maxBatchBytes/2+i))
	}
	table.set("huge", strings.Repeat("y", memTableBytes+1))
	flush(t, s, table)
	require.NoError(t, s.Close())
	again, loaded := mustOpen(t, fs, dataDir)
	require.True(t, maps.Equal(table.state(), loaded.state())) // Equal would print megabytes
	require.NoError(t, again.Close())
}

func TestBatchLen(t *testing.T) {
	sized := func(sizes ...int) (chunk []engine.Change) {
		for _, n := range sizes {
			chunk = append(chunk, engine.Change{Key: []byte("k"), Value: make([]byte, n-1)})
		}
		return chunk
	}
	require.Equal(t, 3, batchLen(sized(1, 1, 1)))
	require.Equal(t, 2, batchLen(sized(1, maxBatchBytes-1, 1)))
	require.Equal(t, 1, batchLen(sized(2*maxBatchBytes, 1)), "a batch must never be empty")
}

// TestIdleEntriesAreLeftOut checks that idle entries are not loaded. The time at which they were idle must be stored
// before the first decision.
func TestIdleEntriesAreLeftOut(t *testing.T) {
	fs := vfs.NewMem()
	s, table := mustOpen(t, fs, dataDir)
	table.set("idle", "1")
	table.set("kept", "1")
	flush(t, s, table)
	table.set("idle", "idle")
	flush(t, s, table)
	require.NoError(t, s.Close())

	later := Record{LimiterNs: 2e18, WallNs: 2e18}
	s, err := OpenStore(StoreOptions{Dir: dataDir, FS: fs, Logger: quiet, OnFatal: mustNotStop(t)})
	require.NoError(t, err)
	table = newFakeTable()
	require.NoError(t, s.Load(engine.Stamp{NowNs: 2e18}, table))
	require.Equal(t, map[string]string{"kept": "1"}, table.state())
	require.EqualValues(t, 2e18, table.loadedAt.NowNs, "the table decides by this time what is idle")
	require.NoError(t, s.Begin(later))
	require.NoError(t, s.abandon())

	s, err = OpenStore(StoreOptions{Dir: dataDir, FS: fs, Logger: quiet, OnFatal: mustNotStop(t)})
	require.NoError(t, err)
	last, ok := s.Last()
	require.True(t, ok)
	require.Equal(t, later.LimiterNs, last.LimiterNs)
	require.NoError(t, s.abandon())
}

func TestABadEntryRefusesTheStart(t *testing.T) {
	fs := vfs.NewMem()
	s, table := mustOpen(t, fs, dataDir)
	table.set("fine", "1")
	table.set("long\x00"+strings.Repeat("k", 500), "bad")
	flush(t, s, table)
	require.NoError(t, s.Close())
	_, _, err := openStore(fs, dataDir, mustNotStop(t))
	require.ErrorIs(t, err, ErrDamaged)
	require.ErrorContains(t, err, `"long\x00kkk`)
	require.ErrorContains(t, err, errBadEntry.Error())
	require.Less(t, len(err.Error()), 400, "the error must cut the key")
}

func TestAnIdleFlushLeavesTheDiskAlone(t *testing.T) {
	s, table := mustOpen(t, vfs.NewMem(), dataDir)
	limiterNs := at().LimiterNs
	now := func() Record { return Record{LimiterNs: limiterNs} }
	writes := func() uint64 { return s.db.Metrics().WAL.BytesIn }

	before := writes()
	require.NoError(t, s.Flush(table, now, false))
	require.Equal(t, before, writes())
	limiterNs += idleRecordNs
	require.NoError(t, s.Flush(table, now, false))
	require.Greater(t, writes(), before, "a new record must be written before it is too old")
	before = writes()
	require.NoError(t, s.Flush(table, now, true))
	require.Greater(t, writes(), before, "a forced flush must always write")
	require.NoError(t, s.Close())
}

// TestNoRecordIsBehindItsEntries checks that the time of a clock record is read after the entries of its batch were
// drained.
func TestNoRecordIsBehindItsEntries(t *testing.T) {
	fs := vfs.NewCrashableMem()
	s, table := mustOpen(t, fs, dataDir)
	for i := range 4 * chunkEntries {
		table.set(fmt.Sprintf("k%06d", i), "v")
	}
	var clones []*vfs.MemFS
	time := at().LimiterNs
	require.NoError(t, s.Flush(table, func() Record {
		clones = append(clones, fs.CrashClone(vfs.CrashCloneCfg{
			UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 2)),
		}))
		time++
		return Record{LimiterNs: time}
	}, true))
	require.Len(t, clones, 5)
	require.NoError(t, s.Close())
	for i, clone := range clones {
		after, loaded := mustOpen(t, clone, dataDir)
		// mustOpen wrote a record of its own, so only the number of entries counts.
		require.LessOrEqual(t, len(loaded.state()), i*chunkEntries)
		require.Zero(t, len(loaded.state())%chunkEntries, "chunks must be atomic")
		require.NoError(t, after.Close())
	}
}
