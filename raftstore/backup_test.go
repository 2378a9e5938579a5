package raftstore_test

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore"
	"github.com/weir-project/weir/raftstore/internal/failure"
)

func backUp(t *testing.T, n *raftstore.Node) []byte {
	t.Helper()
	b, err := n.Backup()
	require.NoError(t, err)
	all, err := io.ReadAll(b)
	require.NoError(t, err)
	require.EqualValues(t, b.Bytes, len(all))
	require.NoError(t, b.Close())
	return all
}

func restoreOptions(o raftstore.Options) raftstore.RestoreOptions {
	return raftstore.RestoreOptions{
		NodeID: o.NodeID, RaftAddr: o.RaftAddr, Credit: time.Hour,
		Store: persistence.StoreOptions{Dir: o.DataDir, Logger: slog.New(slog.DiscardHandler), OnFatal: o.OnFatal},
	}
}

// TestABackupFoundsAnotherCluster checks that a backup of any node becomes a separate cluster with every count and
// policy. It has another cluster id, new nodes join it, and it survives a restart.
func TestABackupFoundsAnotherCluster(t *testing.T) {
	c := newCluster(t, 3, nil)
	leader, at := c.leader()
	c.decideOn(leader, setPolicy("user", 5), check(4, "user", "7"))
	c.take(leader, "key", 10)
	c.agree()
	backup := backUp(t, c.nodes[(at+1)%3])
	c.take(leader, "key", 10) // after the backup, so not in it

	other := &cluster{t: t, fatal: make(chan error, 100), heartbeat: busy}
	t.Cleanup(other.close)
	first := listener(t)
	o := other.options(0, first.Addr().String())
	require.NoError(t, os.Remove(o.DataDir))
	contents, err := raftstore.Restore(restoreOptions(o), bytes.NewReader(backup))
	require.NoError(t, err)
	require.Positive(t, contents.Index)
	o.Listener, o.Join = first, []string{o.RaftAddr}
	node := other.add(o)
	joiner := listener(t)
	p := other.options(1, joiner.Addr().String())
	p.Listener, p.Join, p.Expect = joiner, []string{o.RaftAddr, p.RaftAddr}, 2
	second := other.add(p)
	other.leader()
	require.EqualValues(t, 8, other.take(node, "key", 10).Remaining)
	require.EqualValues(t, 0, other.decideOn(node, check(1, "user", "7"))[0].Remaining)
	require.Eventually(t, func() bool { return second.Policies().Get([]byte("user")) != nil },
		patience, 10*time.Millisecond)
	other.agree()
	require.NotEqual(t, leader.Topology().ClusterID, node.Topology().ClusterID)
	require.NotEmpty(t, node.Topology().ClusterID)

	other.stop(1)
	other.stop(0)
	other.restart(0)
	other.restart(1)
	leader, _ = other.leader()
	require.EqualValues(t, 7, other.take(leader, "key", 10).Remaining, "the restored cluster must survive a restart")
}

// TestARestoredClusterCountsTheTimeSince checks that a restored cluster counts the time since the backup, up to the
// credit. The wall clock of calendar windows is right at once.
func TestARestoredClusterCountsTheTimeSince(t *testing.T) {
	c := newCluster(t, 1, nil)
	leader, _ := c.leader()
	c.take(leader, "key", 10)
	before := leader.Now()
	backup := backUp(t, leader)
	o := c.options(0, "127.0.0.1:1")
	r := restoreOptions(o)
	const later = 3 * time.Hour
	r.Source = laterSource{persistence.SystemSource(), later}
	_, err := raftstore.Restore(r, bytes.NewReader(backup))
	require.NoError(t, err)
	l := listener(t)
	o.Listener, o.RaftAddr = l, l.Addr().String()
	node := c.add(o)
	now := node.Now()
	passed := time.Duration(now.NowNs - before.NowNs)
	require.GreaterOrEqual(t, passed, time.Hour)
	require.Less(t, passed, time.Hour+patience)
	wall := time.Duration(now.NowNs + now.WallOffsetNs - before.NowNs - before.WallOffsetNs)
	require.GreaterOrEqual(t, wall, later)
	require.Less(t, wall, later+patience)
}

type laterSource struct {
	persistence.Source
	by time.Duration
}

func (s laterSource) WallNs() int64 { return s.Source.WallNs() + int64(s.by) }

func TestARestoreIsWholeOrNotThere(t *testing.T) {
	c := newCluster(t, 1, nil)
	leader, _ := c.leader()
	c.take(leader, "key", 10)
	backup := backUp(t, leader)
	o := c.options(0, "127.0.0.1:1")
	_, err := raftstore.Restore(restoreOptions(o), bytes.NewReader(backup[:len(backup)-1]))
	require.ErrorIs(t, err, persistence.ErrNoBackup)
	left, err := os.ReadDir(o.DataDir)
	require.NoError(t, err)
	require.Empty(t, left)

	bad := restoreOptions(o)
	bad.RaftAddr = "0.0.0.0:1"
	_, err = raftstore.Restore(bad, bytes.NewReader(backup))
	require.ErrorContains(t, err, "--raft-addr")

	require.NoError(t, os.Mkdir(filepath.Join(o.DataDir, "restore.tmp"), 0o700))
	o.Listener = listener(t)
	_, err = raftstore.OpenAlone(o)
	require.ErrorIs(t, err, failure.ErrRestoring)
}
