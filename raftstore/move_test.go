package raftstore_test

import (
	"log/slog"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/weir-project/weir/internal/logtest"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore"
)

// restartElsewhere restarts a node at another address.
func (c *cluster) restartElsewhere(i int) {
	c.t.Helper()
	c.stop(i)
	l := listener(c.t)
	c.opts[i].Listener, c.opts[i].RaftAddr = l, l.Addr().String()
	node, err := raftstore.OpenAlone(c.opts[i])
	require.NoError(c.t, err)
	c.nodes[i] = node
}

// knowsWhere waits until a node reports every member up, voting and at its current address.
func (c *cluster) knowsWhere(n *raftstore.Node) {
	c.t.Helper()
	require.Eventually(c.t, func() bool {
		return !slices.ContainsFunc(n.Topology().Nodes, func(m limiter.Member) bool {
			i := slices.IndexFunc(c.opts, func(o raftstore.Options) bool { return o.NodeID == m.ID })
			return m.RaftAddr != c.opts[i].RaftAddr || !m.Up || !m.Voter
		})
	}, patience, 10*time.Millisecond)
}

// TestANodeMoves checks that a node that restarts at another address takes part again with all its state, whether it
// followed or led. All nodes do so in turn.
func TestANodeMoves(t *testing.T) {
	c := newCluster(t, 3, nil)
	leader, at := c.leader()
	c.take(leader, "key", 10)
	for i := range 3 {
		c.restartElsewhere((at + 1 + i) % 3)
		leader, _ = c.leader()
		c.knowsWhere(leader)
		require.EqualValues(t, 8-i, c.take(c.nodes[(at+1+i)%3], "key", 10).Remaining)
	}
	c.agree()
	require.Len(t, leader.Topology().Nodes, 3)
}

// TestANodeAloneMoves checks that a single node can restart at another address, and that a new node joins it there.
func TestANodeAloneMoves(t *testing.T) {
	c := newCluster(t, 1, nil)
	leader, _ := c.leader()
	c.take(leader, "key", 10)
	c.restartElsewhere(0)
	leader, _ = c.leader()
	c.knowsWhere(leader)
	_, err := c.grow(1, nil)
	require.NoError(t, err)
	c.sees(leader, 2, 2)
	require.EqualValues(t, 8, c.take(c.nodes[1], "key", 10).Remaining)
}

// TestACopyDoesNotMove checks that while a node runs, the cluster does not accept a copy of its directory at another
// address.
func TestACopyDoesNotMove(t *testing.T) {
	c := newCluster(t, 3, nil)
	leader, at := c.leader()
	i := (at + 1) % 3
	c.stop(i)
	copied := c.opts[i]
	copied.DataDir = t.TempDir()
	require.NoError(t, os.CopyFS(copied.DataDir, os.DirFS(c.opts[i].DataDir)))
	c.restart(i)
	c.sees(leader, 3, 3)
	l, said := listener(t), &logtest.Buffer{}
	copied.Listener, copied.RaftAddr, copied.Logger = l, l.Addr().String(), slog.New(slog.NewTextHandler(said, nil))
	n, err := raftstore.OpenAlone(copied)
	require.NoError(t, err)
	defer n.Close()
	require.Eventually(t, func() bool { return said.Has("still runs at " + c.opts[i].RaftAddr) },
		patience, time.Millisecond)
	c.knowsWhere(leader)
}
