package raftstore_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/raftstore"
)

// recoverWith puts the recovery file into the directories of stopped nodes: they are
// the whole cluster when they are started again.
func (c *cluster) recoverWith(at ...int) {
	c.t.Helper()
	var lines []string
	for _, i := range at {
		lines = append(lines, fmt.Sprintf(`{"id": %q, "addr": %q}`, c.opts[i].NodeID, c.opts[i].RaftAddr))
	}
	for n, i := range at {
		lines[0], lines[n] = lines[n], lines[0] // their order means nothing
		require.NoError(c.t, os.WriteFile(c.recoveryFile(i), []byte("["+strings.Join(lines, ",")+"]"), 0o600))
	}
}

func (c *cluster) recoveryFile(i int) string {
	return filepath.Join(c.opts[i].DataDir, "recover.json")
}

// TestGoOnWithoutTheMajority: the node that is left of three becomes the cluster when
// the operator says so, with its counts, and only once.
func TestGoOnWithoutTheMajority(t *testing.T) {
	c := newCluster(t, 3, nil)
	leader, at := c.leader()
	c.take(leader, "key", 10)
	require.NoError(t, leader.Snapshot())
	c.take(leader, "key", 10)
	c.agree()
	for i := range 3 {
		c.stop(i)
	}
	c.recoverWith(at)
	c.restart(at)
	leader, _ = c.leader()
	require.EqualValues(t, 7, c.take(leader, "key", 10).Remaining)
	require.NoFileExists(t, c.recoveryFile(at))
	c.stop(at)
	c.restart(at)
	leader, _ = c.leader()
	require.EqualValues(t, 6, c.take(leader, "key", 10).Remaining)
}

// TestTheLostThatReturnAreRefused: survivors of one recovery find each other, and
// neither follow nor lead those that were given up, whatever their terms.
func TestTheLostThatReturnAreRefused(t *testing.T) {
	c := newCluster(t, 5, nil)
	leader, _ := c.leader()
	c.take(leader, "key", 10)
	c.agree()
	before := leader.Topology().ClusterID
	for i := range 5 {
		c.stop(i)
	}
	c.recoverWith(0, 1)
	c.restart(0)
	c.restart(1)
	_, at := c.leader()
	for i := 2; i < 5; i++ {
		c.restart(i)
	}
	lost := &cluster{t: t, nodes: c.nodes[2:], opts: c.opts[2:]}
	_, begun := lost.leader()
	for i := range 4 { // terms beyond that of the others
		lost.moveTo((begun + i) % 3)
	}
	for i := range 4 {
		require.EqualValues(t, 8-i, c.take(c.nodes[i%2], "key", 10).Remaining)
		require.EqualValues(t, 8-i, c.take(lost.nodes[i%3], "key", 10).Remaining)
	}
	now := c.nodes[at].Topology()
	require.Equal(t, c.opts[at].NodeID, now.Leader)
	require.Len(t, *now.Nodes, 2)
	require.NotEqual(t, before, now.ClusterID)
	require.Equal(t, before, lost.nodes[0].Topology().ClusterID)

	late, err := c.grow(5, nil)
	require.NoError(t, err)
	c.sees(c.nodes[at], 3, 3)
	require.Equal(t, now.ClusterID, late.Topology().ClusterID)
}

// killedAtRename is the disk of a node that is killed just before or after it renames
// the recovery file.
type killedAtRename struct {
	vfs.FS
	before bool
}

func (f killedAtRename) Rename(from, to string) error {
	if filepath.Base(from) != "recover.json" {
		return f.FS.Rename(from, to)
	}
	if f.before {
		return errors.New("killed")
	}
	return errors.Join(f.FS.Rename(from, to), errors.New("killed"))
}

// TestAnInterruptedRecovery comes to the same cluster when it is begun again, as does
// another survivor; the next recovery to another one, though its file says the same.
func TestAnInterruptedRecovery(t *testing.T) {
	c := newCluster(t, 2, nil)
	leader, _ := c.leader()
	c.take(leader, "key", 10)
	for round := range 3 {
		leader, _ = c.leader()
		require.NoError(t, leader.Snapshot())
		before := leader.Topology().ClusterID
		c.stop(0)
		c.stop(1)
		c.recoverWith(0, 1)
		o := c.opts[0]
		o.FS, o.Listener = killedAtRename{vfs.Default, round != 1}, listener(t)
		_, err := raftstore.Open(o)
		require.ErrorContains(t, err, "killed")
		c.restart(0)
		c.restart(1)
		c.leader()
		require.NotEqual(t, before, c.nodes[0].Topology().ClusterID)
		require.Equal(t, c.nodes[0].Topology().ClusterID, c.nodes[1].Topology().ClusterID)
	}
	require.EqualValues(t, 8, c.take(c.nodes[0], "key", 10).Remaining)
}

func TestABadRecoveryFileIsRefused(t *testing.T) {
	for name, content := range map[string]string{
		"not JSON": "a,b", "nobody": "[]", "no address": `[{"id": "a"}]`, "without this node": `[{"id": "stranger", "addr": "127.0.0.1:1"}]`,
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 1, nil)
			c.leader()
			c.stop(0)
			file := c.recoveryFile(0)
			require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
			o := c.opts[0]
			o.Listener = listener(t)
			_, err := raftstore.Open(o)
			require.ErrorContains(t, err, "recover.json")
			require.FileExists(t, file, "it can be mended where it is")
		})
	}
}
