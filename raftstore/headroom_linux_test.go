package raftstore_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore"
)

// TestAFullDiskIsNoticedBeforeTheLogIsFull checks that a node stops before its disk is full, even if it decides
// nothing. After a restart with more space it still has its decisions.
func TestAFullDiskIsNoticedBeforeTheLogIsFull(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64m"); err != nil {
		t.Skipf("needs the right to mount a tmpfs: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	c := newCluster(t, 1, func(_ int, o *raftstore.Options) { o.DataDir = filepath.Join(dir, "data") })
	leader, _ := c.leader()
	require.EqualValues(t, 1, c.take(leader, "key", 1).Allowed)

	ballast := filepath.Join(dir, "ballast")
	var disk syscall.Statfs_t
	require.NoError(t, syscall.Statfs(dir, &disk))
	free := int(disk.Bavail) * int(disk.Bsize)
	require.Greater(t, free, 16<<20)
	require.NoError(t, os.WriteFile(ballast, make([]byte, free-8<<20), 0o600)) // small writes still succeed
	var err error
	select { // no decision is made meanwhile
	case err = <-c.fatal:
	case <-time.After(patience):
		t.Fatal("the full disk is not noticed")
	}
	require.ErrorIs(t, err, persistence.ErrDiskFullLive)
	require.NotContains(t, err.Error(), "forgotten")

	require.NoError(t, os.Remove(ballast))
	c.stop(0)
	c.restart(0)
	leader, _ = c.leader()
	require.Zero(t, c.take(leader, "key", 1).Allowed)
	require.NoFileExists(t, filepath.Join(dir, "data", "headroom"))
}
