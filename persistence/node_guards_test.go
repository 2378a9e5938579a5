package persistence

import (
	"bytes"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
)

func TestPebbleIsNotLetGoOn(t *testing.T) {
	var told error
	l := pebbleLogger{log: quiet, fatal: func(err error) { told = err }}
	l.Fatalf("disk %d", 7)
	require.ErrorIs(t, told, ErrDisk)
	require.ErrorContains(t, told, "disk 7")
	require.Panics(t, func() { stopper(quiet, func(error) {})(errTest) },
		"a caller must not continue after it asked for the end")
}

func TestARestoreThatDidNotEndIsSeen(t *testing.T) {
	fs := vfs.NewMem()
	require.False(t, RestoreUnfinished(fs, dataDir))
	require.NoError(t, fs.MkdirAll(fs.PathJoin(dataDir, restoreName), 0o700))
	require.True(t, RestoreUnfinished(fs, dataDir))
}

func TestANodeDecidesInOneStep(t *testing.T) {
	n := mustStart(t, nodeOptions(t, vfs.NewMem(), &fakeSource{wall: noon}))
	out := make([]engine.Decision, 2)
	op := takes(noon)[0]
	require.NoError(t, n.DecideAtomic([]engine.Op{op, op}, out))
	require.EqualValues(t, 9, out[0].Remaining)
	require.EqualValues(t, 8, out[1].Remaining)
	require.NoError(t, n.Close())
}

// TestAStartTellsOfTheDowntime checks that a start logs how far the wall clock moved limiter time forward.
func TestAStartTellsOfTheDowntime(t *testing.T) {
	for _, test := range []bool{false, true} {
		var said bytes.Buffer
		o := nodeOptions(t, vfs.NewMem(), &fakeSource{wall: noon})
		o.TestClock, o.Logger = test, slog.New(slog.NewTextHandler(&said, nil))
		require.NoError(t, mustStart(t, o).Close())
		require.NotContains(t, said.String(), "time continues by the wall clock after a downtime",
			"a first start has no downtime")
		require.NoError(t, mustStart(t, o).Close())
		require.Equal(t, !test, bytes.Contains(said.Bytes(), []byte(
			"time continues by the wall clock after a downtime")))
	}
}

// resting is a Drainer that records the time of each call of Renew.
type resting struct {
	*fakeTable
	spread *spread
	from   []time.Time
}

func (r *resting) Renew(cursor uint64, entries int) uint64 {
	r.from = append(r.from, r.spread.from)
	return r.fakeTable.Renew(cursor, entries)
}

// TestAFlushIsInPieces checks that a flush pauses after each step, in which it rewrites or writes some entries.
func TestAFlushIsInPieces(t *testing.T) {
	s, table := mustOpen(t, vfs.NewMem(), dataDir)
	for n := range 3 * renewStep {
		table.set(string(itemKey(uint64(n))), "value")
	}
	flush(t, s, table)
	require.True(t, s.spread.from.After(s.spread.began), "the flush must pause after its writes")
	before := s.spread.began
	s.journal.renewal = renewal{spareBytes: -1 << 30, entries: 3 * renewStep}
	r := &resting{table, &s.spread, nil}
	require.NoError(t, s.Flush(r, at, true))
	require.True(t, s.spread.began.After(before))
	require.Greater(t, len(r.from), 1)
	for i := range len(r.from) - 1 {
		require.True(t, r.from[i+1].After(r.from[i]), "renewal %d", i)
	}
	require.NoError(t, s.Close())
}

// changeStore changes the Pebble database of a closed store.
func changeStore(t *testing.T, fs vfs.FS, change func(db *pebble.DB) error) {
	t.Helper()
	db, err := pebble.Open(fs.PathJoin(dataDir, stateName), &pebble.Options{FS: fs, Logger: pebbleLogger{log: quiet}})
	require.NoError(t, err)
	require.NoError(t, change(db))
	require.NoError(t, db.Close())
}

// changeFirst changes the first item of a journal, or adds an item after it.
func changeFirst(more string, value []byte) func(db *pebble.DB) error {
	return func(db *pebble.DB) error {
		iter, err := db.NewIter(&pebble.IterOptions{LowerBound: itemKey(0)})
		if err != nil {
			return err
		}
		iter.First()
		err = db.Set(append(bytes.Clone(iter.Key()), more...), value, pebble.Sync)
		return errors.Join(err, iter.Close())
	}
}

// dropFirst removes the first item of a journal.
func dropFirst(db *pebble.DB) error {
	iter, err := db.NewIter(&pebble.IterOptions{LowerBound: itemKey(0)})
	if err != nil {
		return err
	}
	iter.First()
	err = db.Delete(iter.Key(), pebble.Sync)
	return errors.Join(err, iter.Close())
}

// TestAJournalThatDoesNotEndLikeOne checks that a journal is refused if its first or last item is wrong or missing.
func TestAJournalThatDoesNotEndLikeOne(t *testing.T) {
	set := func(key, value []byte) func(db *pebble.DB) error {
		return func(db *pebble.DB) error { return db.Set(key, value, pebble.Sync) }
	}
	const high = 1 << 40
	record := Record{Flush: 1 << 40, LimiterNs: 1e18}.encode()
	for says, change := range map[string]func(db *pebble.DB) error{
		"it begins at item":        dropFirst,
		"it has a key of 3 bytes":  set([]byte("jzz"), []byte("x")),
		"it has a key of 10 bytes": changeFirst("x", []byte("x")),
		"does not end it":          set(itemKey(high), []byte{shortBlock, 0, 1, 'k', 0}),
		"its clock record does not say where": set(
			itemKey(high), append([]byte{clockRecord, 1}, bytes.Repeat([]byte{0xff}, recordLen+11)...)),
		"record does not say where": set(itemKey(high), append([]byte{clockRecord, 1, 3}, record...)),
		"is of an unknown kind":     changeFirst("", []byte{orderedBlock + laneCount}),
		"the checksum of the clock record is wrong": set(
			itemKey(high), append([]byte{clockRecord, 1, 2}, flipped(record, 20)...)),
	} {
		fs, _ := closedStore(t)
		changeStore(t, fs, change)
		_, err := loadState(t, fs)
		require.ErrorIs(t, err, ErrDamaged, says)
		require.ErrorContains(t, err, says)
	}
}

// TestAStoreIsWhatWasRead checks that a start refuses a store without a clock record, and a store that has other items
// when it is opened for writing than when it was read.
func TestAStoreIsWhatWasRead(t *testing.T) {
	fs, _ := closedStore(t)
	changeStore(t, fs, func(db *pebble.DB) error {
		return db.DeleteRange(itemKey(0), []byte{journalPrefix + 1}, pebble.Sync)
	})
	_, err := loadState(t, fs)
	require.ErrorIs(t, err, ErrDamaged)
	require.ErrorContains(t, err, "it has no clock record")

	fs, _ = closedStore(t)
	s, err := OpenStore(StoreOptions{Dir: dataDir, FS: fs, Logger: quiet, OnFatal: mustNotStop(t)})
	require.NoError(t, err)
	require.NoError(t, s.Load(engine.Stamp{NowNs: 1e18}, newFakeTable()))
	s.journal.next++
	err = s.Begin(at())
	require.ErrorIs(t, err, ErrDamaged)
	require.ErrorContains(t, err, "on a second read it ends at item")
	require.NoError(t, s.abandon())
}
