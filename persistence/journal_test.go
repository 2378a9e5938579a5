package persistence

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
)

// storedBytes returns the length of all items in a store. journal.bytes must equal it.
func storedBytes(t *testing.T, db *pebble.DB) (n int64) {
	iter, err := db.NewIter(nil)
	require.NoError(t, err)
	for iter.First(); iter.Valid(); iter.Next() {
		n += int64(len(iter.Key()) + len(iter.Value()))
	}
	require.NoError(t, iter.Close())
	return n
}

// TestAJournalIsNoLongerThanItsBound checks that a journal has the same entries as its table, through rewrite passes
// and restarts. The journal must never exceed its bound.
func TestAJournalIsNoLongerThanItsBound(t *testing.T) {
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 31))
		fs := vfs.NewMem()
		s, table := mustOpen(t, fs, dataDir)
		rounds, longest := 0, int64(0)
		for n := range 400 {
			change(rng, table, n)
			on := s.journal.pass.on
			flush(t, s, table)
			if on && !s.journal.pass.on {
				rounds++
			}
			require.Equal(t, storedBytes(t, s.db), s.journal.bytes)
			longest = max(longest, s.journal.bytes)
			if rng.IntN(20) == 0 {
				require.NoError(t, s.Close())
				want := table.state()
				s, table = mustOpen(t, fs, dataDir)
				require.Equal(t, want, table.state(), "seed %d, flush %d", seed, n)
			}
		}
		require.Greater(t, rounds, 10)
		require.Less(t, longest, int64(20_000),
			"the journal must stay short: 400 flushes of 20 changes would take 240,000 bytes")
		require.NoError(t, s.Close())
	}
}

// TestARewritePassEndsWithoutChanges checks that an idle server ends its rewrite pass, and then writes nothing more.
func TestARewritePassEndsWithoutChanges(t *testing.T) {
	s, table := mustOpen(t, vfs.NewMem(), dataDir)
	for n := range 100 {
		table.set(fmt.Sprint("key", n), "value")
	}
	for range 100 {
		flush(t, s, table)
	}
	s.journal.renewal.spareBytes = 1 << 20
	for range 100 {
		require.NoError(t, s.Flush(table, at, false))
	}
	require.False(t, s.journal.pass.on)
	require.NoError(t, s.Close())
}

// TestARewritePassAfterAStartIsNoBurst checks that a rewrite pass which is due at a start has the normal speed. Its
// speed must not depend on what was written before the start.
func TestARewritePassAfterAStartIsNoBurst(t *testing.T) {
	fs := vfs.NewMem()
	s, table := mustOpen(t, fs, dataDir)
	s.journal.renewal.spareBytes = 1 << 30
	for n := range 10 {
		for i := range 1000 {
			table.set(fmt.Sprint("key", i), fmt.Sprint(n))
		}
		flush(t, s, table)
	}
	require.NoError(t, s.Close())
	s, table = mustOpen(t, fs, dataDir)
	s.journal.renewal = renewal{spareBytes: 1, entries: 10}
	for s.journal.renew(table) {
	}
	require.True(t, s.journal.pass.on)
	require.Less(t, len(table.dirty), 100, "only a few of a thousand entries may be rewritten at once")
	require.NoError(t, s.Close())
}

func TestAJournalWithAGapIsRefused(t *testing.T) {
	fs, _ := closedStore(t)
	db, err := pebble.Open(dataDir+"/"+stateName, &pebble.Options{FS: fs, Logger: pebbleLogger{log: quiet}})
	require.NoError(t, err)
	iter, err := db.NewIter(nil)
	require.NoError(t, err)
	require.True(t, iter.First() && iter.Next())
	require.NoError(t, db.Delete(iter.Key(), pebble.Sync))
	require.NoError(t, iter.Close())
	require.NoError(t, db.Close())
	_, err = loadState(t, fs)
	require.ErrorIs(t, err, ErrDamaged)
	require.ErrorContains(t, err, "missing")
}

func TestItemsOfNoKindAreRefused(t *testing.T) {
	for name, value := range map[string]string{
		"no lane":                  "\x30\x00\x01k\x02\x00v",
		"empty":                    "",
		"a block cut short":        "\x20\x00\x05k",
		"a value cut short":        "\x20\x00\x01k\x09\x00v",
		"shared with nothing":      "\x20\x01\x01k\x00",
		"a shared value of none":   "\x20\x00\x01k\x02\x01v",
		"no shared length":         "\x20\x00\x01k\x02",
		"no value length":          "\x20\x00\x01k",
		"a length that never ends": "\x20\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
		"not an entry":             "\x20\x00\x01k\x04\x00bad",
		"cut short, format 5":      "\x10\x00\x05k",
		"its value, format 5":      "\x10\x00\x01k\x09\x00v",
		"not an entry, format 5":   "\x10\x00\x01k\x04\x00bad",
	} {
		s, _ := mustOpen(t, vfs.NewMem(), dataDir)
		require.NoError(t, s.db.Set(itemKey(s.journal.next), []byte(value), nil))
		s.journal.next++
		require.NoError(t, s.commit(nil, at(), pebble.Sync))
		require.ErrorIs(t, s.journal.load(engine.Stamp{}, newFakeTable(), nil), ErrDamaged, name)
		require.NoError(t, s.Close())
	}
}

// reserving is a Loader that records the argument of Reserve.
type reserving struct {
	*fakeTable
	for64 int64
}

func (r *reserving) Reserve(entries int64) { r.for64 = entries }

// TestAJournalIsNotBelievedToBeLongerThanItsFiles checks that a load reserves memory for at most as many entries as the
// journal has bytes. Otherwise a forged backup with a large count of entries could take all memory before the first
// entry is read.
func TestAJournalIsNotBelievedToBeLongerThanItsFiles(t *testing.T) {
	fs := vfs.NewMem()
	s, table := mustOpen(t, fs, dataDir)
	for n := range 1000 {
		table.set(fmt.Sprintf("key%04d", n), "value")
	}
	flush(t, s, table)
	require.NoError(t, s.Close())
	for _, said := range []int64{1000, 1 << 40, math.MaxInt64, -1} {
		s, err := OpenStore(StoreOptions{Dir: dataDir, FS: fs, Logger: quiet, OnFatal: mustNotStop(t)})
		require.NoError(t, err)
		if said != 1000 {
			s.journal.entries = said
		}
		to := &reserving{fakeTable: newFakeTable()}
		require.NoError(t, s.Load(engine.Stamp{NowNs: 1e18}, to))
		require.Len(t, to.entries, 1000)
		require.GreaterOrEqual(t, to.for64, int64(0))
		if said == 1000 {
			require.EqualValues(t, said, to.for64, "a true count must be used")
		}
		require.Less(t, to.for64, int64(100_000))
		require.NoError(t, s.abandon())
	}
}
