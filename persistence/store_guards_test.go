package persistence

import (
	"bytes"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
)

var errTest = errors.New("it fails")

// TestARecordOfAnUnknownKind checks that a record which weir never writes is refused, even with a valid checksum.
func TestARecordOfAnUnknownKind(t *testing.T) {
	good := Record{Flush: 3, LimiterNs: 1, Test: true}.encode()
	body := good[:recordLen-4]
	with := func(at int, v byte) []byte {
		b := bytes.Clone(body)
		b[at] = v
		return summed(b)
	}
	for name, b := range map[string][]byte{
		"no version": with(0, 0), "another version": with(0, recordVersion+1), "another clock": with(1, 2),
		"no time": Record{}.encode(), "longer": append(bytes.Clone(good), 0),
		"longer, with a sum":  summed(append(bytes.Clone(body), 0)),
		"shorter, with a sum": summed(bytes.Clone(body[:len(body)-1])),
	} {
		_, err := decodeRecord(b)
		require.ErrorIs(t, err, ErrDamaged, name)
	}
	_, err := decodeRecord(with(1, 0))
	require.NoError(t, err)
}

func TestReadyFillsInWhatWasLeftOut(t *testing.T) {
	var o StoreOptions
	o.ready()
	require.Equal(t, usualRenewal, o.renewal)
	require.Equal(t, vfs.Default, o.FS)
	require.NotNil(t, o.Logger)
	given := StoreOptions{FS: vfs.NewMem(), Logger: quiet, renewal: busyRenewal}
	o = given
	o.ready()
	require.Equal(t, given, o)
	require.NotEqual(t, slog.Default(), o.Logger)
}

// TestABackgroundErrorOfPebbleIsFatal checks that an error which Pebble finds in the background ends the process.
// Damage that it finds during a start does not, because the start finds it, too.
func TestABackgroundErrorOfPebbleIsFatal(t *testing.T) {
	var told error
	var loaded atomic.Bool
	listen := watch(func(err error) { told = err }, &loaded)
	corruption := func() { listen.DataCorruption(pebble.DataCorruptionInfo{Path: "000001.sst"}) }
	corruption()
	require.NoError(t, told, "the start must find and refuse it")
	loaded.Store(true)
	corruption()
	require.ErrorIs(t, told, ErrDamagedLive)
	require.ErrorContains(t, told, "000001.sst")

	told = nil
	listen.BackgroundError(pebble.ErrCorruption)
	require.NoError(t, told, "DataCorruption must have been called")
	listen.BackgroundError(errTest)
	require.ErrorIs(t, told, ErrDisk)
	require.ErrorIs(t, told, errTest)
}

// failingMark is a FLUSHED file that cannot be written.
type failingMark struct{ vfs.File }

func (failingMark) WriteAt([]byte, int64) (int, error) { return 0, errTest }

// TestAFailedFlushIsFatal checks that a node stops if it cannot save.
func TestAFailedFlushIsFatal(t *testing.T) {
	for name, save := range map[string]func(n *Node){
		"a flush":  func(n *Node) { n.flush(true) },
		"a clear":  func(n *Node) { _ = n.Clear() },
		"a backup": func(n *Node) { _, _ = n.Backup() },
	} {
		n := mustStart(t, nodeOptions(t, vfs.NewMem(), &fakeSource{wall: noon}))
		var told error
		fatal := func(err error) { told = err; panic(err) }
		n.fatal, n.store.fatal = fatal, fatal
		marks := n.store.marks.file
		n.store.marks.file = failingMark{marks}
		require.Panics(t, func() { save(n) }, name)
		require.ErrorIs(t, told, ErrDisk, name)
		require.ErrorIs(t, told, errTest, name)
		n.store.marks.file = marks
		require.NoError(t, n.Close())
	}
}

// failingTable drains its entries and then fails.
type failingTable struct{ *fakeTable }

func (f failingTable) Drain(n int, emit func([]engine.Change) error) error {
	return errors.Join(f.fakeTable.Drain(n, emit), errTest)
}

// TestAFlushThatDidNotGetEverything checks that a flush whose Drain fails leaves the mark of the previous flush.
func TestAFlushThatDidNotGetEverything(t *testing.T) {
	fs := vfs.NewMem()
	s, table := mustOpen(t, fs, dataDir)
	table.set("a", "1")
	flush(t, s, table)
	marked, err := s.dir.readMark()
	require.NoError(t, err)
	require.ErrorIs(t, s.Flush(failingTable{table}, at, true), errTest)
	again, err := s.dir.readMark()
	require.NoError(t, err)
	require.Equal(t, marked, again, "an incomplete flush must not be acknowledged")
	require.NoError(t, s.Close())
}

// TestAStoreThatTakesNothing checks that commit and Flush return the error of a store that is read-only before Begin,
// and that inBatches stops at the first error.
func TestAStoreThatTakesNothing(t *testing.T) {
	fs, _ := closedStore(t)
	s, err := OpenStore(StoreOptions{Dir: dataDir, FS: fs, Logger: quiet, OnFatal: mustNotStop(t)})
	require.NoError(t, err)
	last := s.last
	require.ErrorIs(t, s.commit(nil, at(), pebble.Sync), pebble.ErrReadOnly)
	require.Equal(t, last, s.last)
	require.ErrorIs(t, s.Flush(newFakeTable(), at, true), pebble.ErrReadOnly)
	table := newFakeTable()
	table.set("a", "1")
	require.ErrorIs(t, s.Flush(table, at, false), pebble.ErrReadOnly)
	require.NoError(t, s.abandon())

	chunk := []engine.Change{{Value: make([]byte, maxBatchBytes)}, {Key: []byte("k")}, {Key: []byte("l")}}
	written := 0
	write := func(batch []engine.Change) error { written += len(batch); return errTest }
	require.ErrorIs(t, inBatches(chunk, write), errTest)
	require.Equal(t, 1, written)
}

// TestAStoreThatCannotBeReopened checks that Begin fails if a store that was read cannot be opened for writing.
func TestAStoreThatCannotBeReopened(t *testing.T) {
	mem, _ := closedStore(t)
	var fails atomic.Bool
	fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if fails.Load() && op.Kind == errorfs.OpOpen {
			return errTest
		}
		return nil
	}))
	s, err := OpenStore(StoreOptions{Dir: dataDir, FS: fs, Logger: quiet, OnFatal: mustNotStop(t)})
	require.NoError(t, err)
	require.NoError(t, s.Load(engine.Stamp{NowNs: 1e18}, newFakeTable()))
	fails.Store(true)
	require.ErrorIs(t, s.Begin(at()), errTest)
	require.NoError(t, s.abandon())
}

func TestADirectoryThatCannotBeSynced(t *testing.T) {
	for _, kind := range []errorfs.OpKind{errorfs.OpOpenDir, errorfs.OpFileSync} {
		fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == kind {
				return errTest
			}
			return nil
		}))
		require.ErrorIs(t, MakeDirectory(fs, "a/b"), errTest)
	}
}

func TestBytesThatAreNoBackup(t *testing.T) {
	_, err := readContents(bytes.NewReader(make([]byte, backupHead)))
	require.ErrorIs(t, err, ErrNoBackup)
	require.ErrorContains(t, err, "it does not begin with the header of a backup")
	_, err = readContents(errorReader{})
	require.ErrorIs(t, err, errTest)
	require.NotErrorIs(t, err, ErrNoBackup, "the error must name the disk, not the backup")
	_, err = readContents(bytes.NewReader(Contents{At: Record{LimiterNs: 1}}.encode()))
	require.NoError(t, err)
	_, err = readContents(bytes.NewReader(Contents{}.encode()))
	require.ErrorIs(t, err, ErrDamaged, "a backup whose clock record is empty must be refused")
}

type errorReader struct{}

func (errorReader) Read([]byte) (int, error) { return 0, errTest }

func TestFormatOfWhatIsNoDirectoryOfWeir(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, vfs.Default, vfs.Default.PathJoin(dir, "holiday.jpg"), nil)
	_, err := FormatOf(dir)
	require.ErrorIs(t, err, ErrForeign)
}

// TestTheGuardIsArmed checks when a disk failure ends the process: from Begin on, in a new and in an existing
// directory. Before Begin it refuses the start of an existing directory.
func TestTheGuardIsArmed(t *testing.T) {
	fs := vfs.NewMem()
	for _, fresh := range []bool{true, false} {
		s, err := OpenStore(StoreOptions{Dir: dataDir, FS: fs, Logger: quiet, OnFatal: mustNotStop(t)})
		require.NoError(t, err)
		require.Equal(t, fresh, s.guard.armed.Load(), "only a new directory is written before Begin")
		require.NoError(t, s.Load(engine.Stamp{NowNs: 1e18}, newFakeTable()))
		require.NoError(t, s.Begin(at()))
		require.True(t, s.guard.armed.Load())
		require.True(t, s.loaded.Load(), "damage found in the background must also count from here on")
		require.NoError(t, s.Close())
	}
	m := mustOpenImages(t, vfs.NewMem())
	require.True(t, m.guard.armed.Load())
	require.True(t, m.loaded.Load())
	require.NoError(t, m.Close())
}
