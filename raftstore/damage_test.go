package raftstore_test

import (
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	wal "github.com/hashicorp/raft-wal"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/raftstore"
)

// damagedStarts is the number of flipped bits, each in its own copy.
const damagedStarts = 6

// logFile returns the newest segment of a node's log, and how many of its bytes are used.
func logFile(t *testing.T, dataDir string) (path string, b []byte, used int) {
	names, err := filepath.Glob(filepath.Join(dataDir, "shared-log", "*.wal"))
	require.NoError(t, err)
	require.NotEmpty(t, names)
	path = names[len(names)-1]
	b, err = os.ReadFile(path)
	require.NoError(t, err)
	for used = len(b); used > 0 && b[used-1] == 0; used-- {
	}
	return path, b, used
}

// refuses starts a node with a damaged directory. The node must refuse it, name the entry and the advice, and not
// change the log.
func (c *cluster) refuses(o raftstore.Options, advice string) {
	c.t.Helper()
	path, before, _ := logFile(c.t, o.DataDir)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(c.t, err)
	o.RaftAddr, o.Listener = l.Addr().String(), l
	node, err := raftstore.OpenAlone(o)
	if err == nil {
		require.NoError(c.t, node.Close())
	}
	require.ErrorIs(c.t, err, wal.ErrCorrupt)
	require.ErrorContains(c.t, err, filepath.Base(path))
	require.ErrorContains(c.t, err, "log entry ")
	require.ErrorContains(c.t, err, advice)
	after, err := os.ReadFile(path)
	require.NoError(c.t, err)
	require.True(c.t, slices.Equal(before, after), "the log must not change")
}

// TestADamagedNodeRefusesToStart checks that a single node refuses to start if any bit of its log is flipped.
func TestADamagedNodeRefusesToStart(t *testing.T) {
	c := newCluster(t, 1, nil)
	n, _ := c.leader()
	for range 60 {
		require.EqualValues(t, 1, c.take(n, "k", 1000).Allowed)
	}
	c.stop(0)
	o := c.opts[0]
	for range damagedStarts {
		copied := t.TempDir()
		require.NoError(t, os.CopyFS(copied, os.DirFS(o.DataDir)))
		path, b, used := logFile(t, copied)
		at := rand.IntN(used)
		b[at] ^= 1 << rand.IntN(8)
		require.NoError(t, os.WriteFile(path, b, 0o600))
		hurt := o
		hurt.DataDir = copied
		c.refuses(hurt, "Restore the newest backup")
	}
}

// TestADamagedMajorityForgetsNothing checks that a damaged log does not lose decisions. Two of three nodes have all
// acknowledged decisions. One of them is damaged and refuses to start. The other one and the third node continue with
// every decision.
func TestADamagedMajorityForgetsNothing(t *testing.T) {
	c := newCluster(t, 3, nil)
	c.leader()
	c.sees(c.nodes[0], 3, 3)
	c.stop(2)
	n, _ := c.leader()
	for range 40 {
		require.EqualValues(t, 1, c.take(n, "k", 1000).Allowed)
	}
	c.stop(0)
	c.stop(1)
	path, b, used := logFile(t, c.opts[1].DataDir)
	b[used/2] ^= 4
	require.NoError(t, os.WriteFile(path, b, 0o600))
	c.refuses(c.opts[1], "check that a majority serves")

	c.restart(0)
	c.restart(2)
	n, _ = c.leader()
	require.EqualValues(t, 1000-41, c.take(n, "k", 1000).Remaining)
}
