package persistence

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
)

func backUp(t *testing.T, n *Node) []byte {
	t.Helper()
	b, err := n.Backup()
	require.NoError(t, err)
	all, err := io.ReadAll(b)
	require.NoError(t, err)
	require.EqualValues(t, b.Bytes, len(all))
	require.NoError(t, b.Close())
	return all
}

// restoreOn restores a backup to an otherwise empty file system.
func restoreOn(t *testing.T, fs vfs.FS, backup []byte) error {
	_, err := Restore(StoreOptions{Dir: dataDir, FS: fs, Logger: quiet, OnFatal: mustNotStop(t)},
		bytes.NewReader(backup))
	return err
}

// busyNode returns a node that has used every algorithm, a policy with an override, and a block.
func busyNode(t *testing.T, fs vfs.FS, src *fakeSource) *Node {
	n := mustStart(t, nodeOptions(t, fs, src))
	policy := &engine.Policy{
		Limits: []engine.PolicyLimit{{Limit: engine.Limit{Algorithm: engine.FixedWindow,
			Mode: engine.Forever, Max: 10}}},
		Overrides: []engine.Override{{Pattern: "vip:*", UntilNs: engine.Never}},
	}
	ops := append(takes(noon),
		engine.Op{Code: engine.OpPolicy, Key: []byte("user"), Policy: &engine.PolicyChange{Terms: policy}},
		engine.Op{Code: engine.OpCheck, Text: []byte("user"), Key: []byte("7"), Cost: 4})
	for _, op := range ops {
		require.Equal(t, engine.OK, decide(t, n, op).Status)
	}
	return n
}

// TestABackupBringsEverythingBack checks that a backup has the clock and everything that was decided before it began,
// and nothing later. The node continues, also with the next backup.
func TestABackupBringsEverythingBack(t *testing.T) {
	fs, src := vfs.NewMem(), &fakeSource{wall: noon}
	n := busyNode(t, fs, src)
	before, policies := look(n), n.Policies().Get([]byte("user"))
	backup := backUp(t, n)
	for _, op := range takes(noon) {
		decide(t, n, op)
	}
	require.NotEqual(t, backup, backUp(t, n), "a second backup must have later decisions")
	require.NoError(t, n.Close())
	require.NotContains(t, files(t, fs, dataDir), backupName)

	restored := vfs.NewMem()
	require.NoError(t, restoreOn(t, restored, backup))
	names, err := restored.List(dataDir)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{formatName, flushedName, stateName}, names)
	again := mustStart(t, nodeOptions(t, restored, src))
	require.Equal(t, before, look(again))
	found := again.Policies().Get([]byte("user"))
	require.Equal(t, policies.Version, found.Version)
	require.Equal(t, policies.Limits, found.Limits)
	require.Equal(t, policies.Overrides, found.Overrides)
	check := engine.Op{Code: engine.OpCheck, Text: []byte("user"), Key: []byte("7"), Cost: 7}
	require.Zero(t, decide(t, again, check).Allowed, "6 of 10 units must be left")
	require.NoError(t, again.Close())
}

// TestARestoredClockGoesOn checks that limiter time never goes back in a restore, and that the time since the backup
// counts as downtime.
func TestARestoredClockGoesOn(t *testing.T) {
	fs, src := vfs.NewMem(), &fakeSource{wall: noon}
	n := busyNode(t, fs, src)
	src.pass(time.Minute)
	at, backup := n.Now(), backUp(t, n)
	require.NoError(t, n.Close())
	src.step(time.Hour)
	restored := vfs.NewMem()
	require.NoError(t, restoreOn(t, restored, backup))
	again := mustStart(t, nodeOptions(t, restored, src))
	require.EqualValues(t, at.NowNs+int64(time.Hour), again.Now().NowNs)
	require.NoError(t, again.Close())
}

func flipped(b []byte, i int) []byte {
	b = bytes.Clone(b)
	b[i] ^= 1 << (i % 8)
	return b
}

func TestANewerBackupIsRefused(t *testing.T) {
	n := busyNode(t, vfs.NewMem(), &fakeSource{wall: noon})
	backup := backUp(t, n)
	require.NoError(t, n.Close())
	binary.LittleEndian.PutUint32(backup[len(backupMagic):], newestBackup+1)
	sum := crc32.Checksum(backup[:backupHead-4], castagnoli)
	binary.LittleEndian.PutUint32(backup[backupHead-4:], sum)
	fs := vfs.NewMem()
	err := restoreOn(t, fs, backup)
	require.ErrorIs(t, err, ErrBackupNewer)
	require.ErrorContains(t, err, "backup format 5, this weir knows 4")
	_, err = fs.Stat(dataDir)
	require.Error(t, err, "a failed restore must not leave its directory")
}

func TestRestoreNeedsAnEmptyDirectory(t *testing.T) {
	fs := vfs.NewMem()
	n := busyNode(t, fs, &fakeSource{wall: noon})
	backup := backUp(t, n)
	require.NoError(t, n.Close())
	before := files(t, fs, dataDir)
	require.ErrorIs(t, restoreOn(t, fs, backup), ErrNotEmpty)
	require.Equal(t, before, files(t, fs, dataDir))
}

// TestAnInterruptedRestore checks that no server starts from the directory of an interrupted restore, and that the
// next restore starts over.
func TestAnInterruptedRestore(t *testing.T) {
	n := busyNode(t, vfs.NewMem(), &fakeSource{wall: noon})
	backup := backUp(t, n)
	require.NoError(t, n.Close())
	fs := vfs.NewMem()
	require.NoError(t, fs.MkdirAll(fs.PathJoin(dataDir, restoreName, "image"), 0o700))
	_, err := Open(nodeOptions(t, fs, &fakeSource{wall: noon}))
	require.ErrorIs(t, err, ErrForeign)
	require.NoError(t, restoreOn(t, fs, backup))
}

func TestOneBackupAtATime(t *testing.T) {
	fs := vfs.NewMem()
	n := busyNode(t, fs, &fakeSource{wall: noon})
	first, err := n.Backup()
	require.NoError(t, err)
	_, err = n.Backup()
	require.ErrorIs(t, err, ErrBackingUp)
	crash := copyDir(t, fs)
	require.NoError(t, first.Close())
	backUp(t, n)
	require.NoError(t, n.Close())
	_, err = n.Backup()
	require.ErrorIs(t, err, ErrClosed)

	again := mustStart(t, nodeOptions(t, crash, &fakeSource{wall: noon}))
	backUp(t, again) // this removes the files of a backup that a crash interrupted
	require.NoError(t, again.Close())
	alone := mustStart(t, Options{Logger: quiet})
	_, err = alone.Backup()
	require.ErrorIs(t, err, ErrNoDisk)
	require.NoError(t, alone.Close())
}

// TestALinkThatACrashLeft checks that a backup succeeds although a crash left the file that tests for hard links.
func TestALinkThatACrashLeft(t *testing.T) {
	fs := vfs.NewMem()
	n := busyNode(t, fs, &fakeSource{wall: noon})
	for _, name := range []string{"link", "link" + tempSuffix} {
		writeFile(t, fs, fs.PathJoin(dataDir, name), nil)
	}
	backUp(t, n)
	require.NoError(t, n.Close())
}

// TestABackupOfEntriesThatNoTableTakes checks that a backup with correct checksums and invalid entries restores
// nothing.
func TestABackupOfEntriesThatNoTableTakes(t *testing.T) {
	images := mustOpenImages(t, vfs.NewMem())
	require.NoError(t, images.Write([]engine.Change{{Key: []byte("lk"), Value: []byte("bad")}}))
	info := seal(t, images, 7)
	stream, _, err := images.Send(info.ID)
	require.NoError(t, err)
	b := NewBackup(stream, info.Bytes, Contents{Index: 7, Term: 1, At: Record{LimiterNs: noon}})
	all, err := io.ReadAll(b)
	require.NoError(t, err)
	require.NoError(t, b.Close())
	require.NoError(t, images.Close())
	fs := vfs.NewMem()
	require.ErrorIs(t, restoreOn(t, fs, all), ErrNoBackup)
	_, err = fs.Stat(dataDir)
	require.Error(t, err)
}

// TestTheFormatFileComesLast checks that the file which makes a directory valid is written when everything else is on
// disk, and that the list of the files to move is on disk before the first of them is moved.
func TestTheFormatFileComesLast(t *testing.T) {
	var did []string
	mem := vfs.NewMem()
	d := directory{errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		switch op.Kind {
		case errorfs.OpRename:
			did = append(did, mem.PathBase(op.Path))
		case errorfs.OpOpenDir:
			did = append(did, "sync")
		}
		return nil
	})), dataDir}
	ready := mem.PathJoin(dataDir, restoreName, "ready")
	require.NoError(t, mem.MkdirAll(ready, 0o700))
	for _, name := range []string{"A", formatName, "Z"} {
		writeFile(t, mem, mem.PathJoin(ready, name), nil)
	}
	require.NoError(t, d.moveIntoPlace(formatName))
	require.Len(t, did, 7)
	require.Equal(t, []string{movingName + ".new", "sync"}, did[:2])
	require.ElementsMatch(t, []string{"A", "Z"}, did[2:4])
	require.Equal(t, []string{"sync", formatName, "sync"}, did[4:])
}

// TestAMoveIntoPlaceThatFails checks that a restore stops at the first failure and removes the files that it moved. The
// same restore can then be tried again.
func TestAMoveIntoPlaceThatFails(t *testing.T) {
	for fails := range 8 { // the operation that fails: the list, one of three renames, one of three syncs, or none
		mem, ops := vfs.NewMem(), 0
		d := directory{errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind != errorfs.OpList && op.Kind != errorfs.OpRename && op.Kind != errorfs.OpOpenDir {
				return nil
			}
			if ops++; ops == fails+1 {
				return errTest
			}
			return nil
		})), dataDir}
		ready := mem.PathJoin(dataDir, restoreName, "ready")
		require.NoError(t, mem.MkdirAll(ready, 0o700))
		writeFile(t, mem, mem.PathJoin(ready, "A"), nil)
		writeFile(t, mem, mem.PathJoin(ready, formatName), nil)
		err := d.moveIntoPlace(formatName)
		if fails == 7 {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, errTest, "operation %d", fails)
		require.Equal(t, fails+1, ops, "no operation may follow the failure")
		left, err := mem.List(dataDir)
		require.NoError(t, err)
		require.Equal(t, []string{restoreName}, left, "operation %d", fails)
	}
}
