package raftstore_test

import (
	"bytes"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore"
)

// killEvery is how many operations on the file system pass from one kill to the next.
const killEvery = 7

// TestARestoreOfGroupsThatIsKilled copies the disk at many moments of a restore into four groups, as a loss of power and
// as a kill leave it. Either the data directories of all groups are complete, or the directory belongs to no node and
// the restore can be repeated.
func TestARestoreOfGroupsThatIsKilled(t *testing.T) {
	c := newCluster(t, 1, nil)
	leader, _ := c.leader()
	for range 20 {
		c.take(leader, "key", 100)
	}
	backup := backUp(t, leader)
	disk := vfs.NewCrashableMem()
	type left struct {
		fs    *vfs.MemFS
		moves bool // the restore was at a rename
	}
	var copies []left
	ops := 0
	var mu sync.Mutex // guards copies and ops, because the store writes on several goroutines
	fs := errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if ops++; ops%killEvery == 0 || op.Kind == errorfs.OpRename {
			for _, kept := range []int{0, 50, 100} {
				copies = append(copies, left{disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: kept,
					RNG: rand.New(rand.NewPCG(uint64(ops), uint64(kept)))}), op.Kind == errorfs.OpRename})
			}
		}
		return nil
	}))
	o := raftstore.RestoreOptions{NodeID: "a", RaftAddr: "127.0.0.1:1", Groups: 4,
		Store: persistence.StoreOptions{Dir: "/data", FS: fs, Logger: slog.New(slog.DiscardHandler)}}
	_, err := raftstore.Restore(o, bytes.NewReader(backup))
	require.NoError(t, err)
	mu.Lock()
	defer mu.Unlock()
	copies = append(copies, left{disk.CrashClone(vfs.CrashCloneCfg{}), false})
	whole := 0
	for _, left := range copies {
		has, ok, err := raftstore.FoundingOf(&raftstore.Options{FS: left.fs, DataDir: "/data"})
		require.NoError(t, err)
		if !ok && left.moves {
			again := o
			again.Store.FS = left.fs
			_, err := raftstore.Restore(again, bytes.NewReader(backup))
			require.NoError(t, err)
		}
		if !ok {
			continue
		}
		whole++
		require.Equal(t, raftstore.Founding{Groups: 4}, has)
		for group := range has.Groups {
			isWhole(t, left.fs, raftstore.GroupDir("/data", group))
		}
	}
	t.Logf("%d copies of the disk, %d of them whole", len(copies), whole)
	require.Positive(t, whole)
	require.Less(t, whole, len(copies)/2)
}

// isWhole checks that a directory belongs to a member and has a complete image.
func isWhole(t *testing.T, fs vfs.FS, dir string) {
	_, ok, err := raftstore.FoundingOf(&raftstore.Options{FS: fs, DataDir: dir})
	require.NoError(t, err)
	require.True(t, ok)
	images, err := persistence.OpenImages(persistence.StoreOptions{Dir: fs.PathJoin(dir, "table"), FS: fs,
		Logger: slog.New(slog.DiscardHandler), OnFatal: func(err error) { panic(err) }})
	require.NoError(t, err)
	defer images.Close()
	list, err := images.List()
	require.NoError(t, err)
	require.Len(t, list, 1)
	stream, _, err := images.Send(list[0].ID)
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, stream) // this verifies every byte
	require.NoError(t, err)
	require.NoError(t, stream.Close())
}

// TestABackupThatFailsClosesTheOthers checks that the backup of a group that cannot be joined leaves no image open.
func TestABackupThatFailsClosesTheOthers(t *testing.T) {
	c := newCluster(t, 1, nil)
	leader, _ := c.leader()
	good, err := leader.Backup()
	require.NoError(t, err)
	closed := &closeCounter{ReadCloser: io.NopCloser(bytes.NewReader(nil))}
	_, err = persistence.JoinBackups([]*limiter.Backup{good, {ReadCloser: closed}})
	require.ErrorIs(t, err, persistence.ErrNoBackup)
	require.Equal(t, 1, closed.times)
	_, err = good.Read(make([]byte, 1))
	require.Error(t, err)
}

type closeCounter struct {
	io.ReadCloser
	times int
}

func (c *closeCounter) Close() error { c.times++; return c.ReadCloser.Close() }
