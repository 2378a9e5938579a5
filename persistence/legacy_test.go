package persistence

import (
	"errors"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
)

// The last version with format 1 wrote testdata/format1, after the operations of takes(noon).

// fromTestdata copies a directory below testdata into memory.
func fromTestdata(t *testing.T, name string) *vfs.MemFS {
	fs := vfs.NewMem()
	ok, err := vfs.Clone(vfs.Default, fs, "testdata/"+name, dataDir)
	require.NoError(t, err)
	require.True(t, ok)
	return fs
}

func TestADirectoryOfFormat1(t *testing.T) {
	fs, src := fromTestdata(t, "format1/standalone"), &fakeSource{wall: noon}
	src.pass(time.Duration(3*len(takes(noon))) * 100 * time.Millisecond)
	n := mustStart(t, nodeOptions(t, fs, src))
	require.Equal(t, formatText(formatVersion), string(readFile(t, fs, dataDir+"/FORMAT")),
		"an older version must not start from it")

	same, live := &fakeSource{wall: noon}, vfs.NewMem()
	want := mustStart(t, nodeOptions(t, live, same))
	for _, op := range takes(noon) {
		for range 3 {
			decide(t, want, op)
			same.pass(100 * time.Millisecond)
		}
	}
	require.Equal(t, look(want), look(n))

	op := takes(noon)[0]
	require.Equal(t, decide(t, want, op), decide(t, n, op))
	before := look(n)
	require.NoError(t, n.Close())
	n = mustStart(t, nodeOptions(t, fs, src))
	require.Equal(t, before, look(n), "old and new entries must come back together")
	require.NoError(t, n.Close())
	require.NoError(t, want.Close())
}

// TestADirectoryOfFormats2And3 checks that directories with the old encoding of blocks load. The kind of each block
// tells its encoding.
func TestADirectoryOfFormats2And3(t *testing.T) {
	for _, format := range []int{2, 3} {
		fs, src := vfs.NewMem(), &fakeSource{wall: noon}
		n := mustStart(t, nodeOptions(t, fs, src))
		for _, op := range takes(noon) {
			decide(t, n, op)
		}
		before := look(n)
		require.NoError(t, n.Close())
		writeBlocksWhole(t, fs)
		writeFile(t, fs, dataDir+"/FORMAT", []byte(formatText(format)))

		n = mustStart(t, nodeOptions(t, fs, src))
		require.Equal(t, before, look(n))
		require.Equal(t, formatText(formatVersion), string(readFile(t, fs, dataDir+"/FORMAT")),
			"an older version must not start from it")
		decide(t, n, takes(noon)[0])
		before = look(n)
		require.NoError(t, n.Close())
		n = mustStart(t, nodeOptions(t, fs, src))
		require.Equal(t, before, look(n), "old and new entries must come back together")
		require.NoError(t, n.Close())
	}
}

// writeBlocksWhole rewrites the blocks of a directory in the encoding of formats 2 and 3.
func writeBlocksWhole(t *testing.T, fs *vfs.MemFS) {
	db, err := openPebble(dataDir+"/"+stateName, &pebble.Options{FS: fs, FormatMajorVersion: pebbleFormat})
	require.NoError(t, err)
	iter, err := db.NewIter(nil)
	require.NoError(t, err)
	blocks := 0
	for iter.First(); iter.Valid(); iter.Next() {
		value, err := iter.ValueAndErr()
		require.NoError(t, err)
		if kind := value[0]; kind >= orderedBlock && kind < orderedBlock+laneCount {
			changes, err := changesOf(stored{kind: kind, bytes: value[1:]})
			require.NoError(t, err)
			require.NoError(t, db.Set(iter.Key(), append([]byte{kind &^ orderedBlock}, wholeBlock(changes...).bytes...),
				pebble.Sync))
			blocks++
		}
	}
	require.NoError(t, iter.Close())
	require.NotZero(t, blocks)
	require.NoError(t, db.Close())
}

func TestAnImageOfFormat1(t *testing.T) {
	fs := fromTestdata(t, "format1/images")
	m := mustOpenImages(t, fs)
	table := engine.NewTable(engine.Options{TrackChanges: true})
	at, ops := engine.Stamp{NowNs: noon}, takes(noon)
	out := make([]engine.Decision, len(ops))
	for range 3 {
		at.NowNs += int64(100 * time.Millisecond)
		table.Decide(at, ops, out)
	}
	list, err := m.List()
	require.NoError(t, err)
	load := func(id string) *engine.Table {
		loaded := engine.NewTable(engine.Options{TrackChanges: true})
		require.NoError(t, m.Load(id, func(state []byte) (engine.Stamp, error) { return at, nil }, loaded))
		require.Equal(t, table.StateHash(at), loaded.StateHash(at))
		return loaded
	}
	loaded := load(list[0].ID)
	table.Decide(at, ops, out)
	loaded.Decide(at, ops, out)
	write(t, m, loaded)
	load(seal(t, m, 4).ID)
	require.NoError(t, m.Close())
}

// TestFormat1GoesWithTheFirstRewritePass checks that the first rewrite pass replaces everything in format 1.
func TestFormat1GoesWithTheFirstRewritePass(t *testing.T) {
	fs := fromTestdata(t, "format1/standalone")
	s, err := OpenStore(
		StoreOptions{Dir: dataDir, FS: fs, Logger: quiet, OnFatal: mustNotStop(t), renewal: busyRenewal})
	require.NoError(t, err)
	table, at := engine.NewTable(engine.Options{TrackChanges: true}), engine.Stamp{NowNs: noon}
	require.NoError(t, s.Load(at, table))
	hash, record := table.StateHash(at), Record{LimiterNs: noon, WallNs: noon}
	require.NoError(t, s.Begin(record))
	for s.journal.legacy {
		require.NoError(t, s.Flush(table, func() Record { return record }, true))
	}
	_, _, err = s.db.Get(legacyRecords[clockRecord])
	require.Error(t, err)
	require.NoError(t, s.Close())

	s, err = OpenStore(StoreOptions{Dir: dataDir, FS: fs, Logger: quiet, OnFatal: mustNotStop(t)})
	require.NoError(t, err)
	again := engine.NewTable(engine.Options{})
	require.NoError(t, s.Load(at, again))
	require.Equal(t, hash, again.StateHash(at))
	require.NoError(t, s.abandon())
}

// TestABackupOfADirectoryOfFormat1 checks that a backup of an upgraded server includes the entries in format 1.
func TestABackupOfADirectoryOfFormat1(t *testing.T) {
	fs, src := fromTestdata(t, "format1/standalone"), &fakeSource{wall: noon}
	src.pass(time.Duration(3*len(takes(noon))) * 100 * time.Millisecond)
	n := mustStart(t, nodeOptions(t, fs, src))
	want := look(n)
	require.NotEmpty(t, want)
	b, err := n.Backup()
	require.NoError(t, err)
	to := vfs.NewMem()
	_, err = Restore(StoreOptions{Dir: dataDir, FS: to, Logger: quiet, OnFatal: mustNotStop(t)}, b)
	require.NoError(t, errors.Join(err, b.Close()))
	require.NoError(t, n.Close())
	restored := mustStart(t, nodeOptions(t, to, src))
	require.Equal(t, want, look(restored))
	require.NoError(t, restored.Close())
}

func TestTheFormatOfADirectoryIsItsOwn(t *testing.T) {
	format, err := FormatOf("testdata/format1/standalone")
	require.NoError(t, err)
	require.Equal(t, 1, format)
	format, err = FormatOf(t.TempDir())
	require.NoError(t, err)
	require.Zero(t, format)
}
