package raftstore_test

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/freeport"
	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore"
	"github.com/weir-project/weir/raftstore/internal/failure"
)

// grow starts another node that joins.
func (c *cluster) grow(i int, change func(o *raftstore.Options)) (*raftstore.Node, error) {
	l := listener(c.t)
	o := c.options(i, l.Addr().String())
	for _, other := range c.opts[:min(2, len(c.opts))] {
		o.Join = append(o.Join, other.RaftAddr)
	}
	o.Expect, o.Listener = len(o.Join), l
	if change != nil {
		change(&o)
	}
	node, err := raftstore.OpenAlone(o)
	if err == nil {
		c.nodes, c.opts = append(c.nodes, node), append(c.opts, o)
	}
	return node, err
}

// sees waits until a node reports this many members and voters.
func (c *cluster) sees(n *raftstore.Node, members, voters int) {
	c.t.Helper()
	require.Eventually(c.t, func() bool {
		nodes := n.Topology().Nodes
		voting := 0
		for _, m := range nodes {
			if m.Voter {
				voting++
			}
		}
		return len(nodes) == members && voting == voters
	}, patience, 10*time.Millisecond)
}

// allSee waits until the leader reports this many members, all of them voters.
func (c *cluster) allSee(members int) {
	c.t.Helper()
	c.order(func(leader *raftstore.Node) error {
		nodes := leader.Topology().Nodes
		for _, m := range nodes {
			if !m.Voter || len(nodes) != members {
				return fmt.Errorf("the members are %v", nodes)
			}
		}
		return nil
	})
}

func TestGrowToFiveAndShrink(t *testing.T) {
	c := newCluster(t, 3, nil)
	leader, at := c.leader()
	c.take(leader, "key", 10)
	for i := 3; i < 5; i++ {
		_, err := c.grow(i, nil)
		require.NoError(t, err)
	}
	c.sees(leader, 5, 5)
	require.EqualValues(t, 8, c.take(c.nodes[4], "key", 10).Remaining)

	gone := (at + 1) % 3
	require.Eventually(t, func() bool {
		err := c.nodes[(at+2)%3].RemoveNode(c.opts[gone].NodeID)
		return err == nil || strings.Contains(err.Error(), "no node") // of an attempt without an answer
	}, patience, 10*time.Millisecond, "a follower must forward the removal to the leader")
	c.sees(leader, 4, 4)
	require.ErrorIs(t, <-c.fatal, raftstore.ErrRemoved)
	require.Error(t, leader.RemoveNode("nobody"))
}

func TestReplaceADeadNode(t *testing.T) {
	c := newCluster(t, 3, nil)
	_, at := c.leader()
	dead := (at + 1) % 3
	c.stop(dead)
	_, at = c.remove(c.opts[dead].NodeID)
	_, err := c.grow(7, func(o *raftstore.Options) { o.Join, o.Expect = []string{c.opts[at].RaftAddr}, 1 })
	require.NoError(t, err)
	c.allSee(3)
	c.take(c.nodes[3], "key", 10)
	c.agree()
}

func TestLeadershipIsHandedOver(t *testing.T) {
	c := newCluster(t, 3, nil)
	leader, at := c.leader()
	c.take(leader, "key", 10)
	to := (at + 1) % 3
	next := c.moveTo(to)
	require.EqualValues(t, 8, c.take(next, "key", 10).Remaining)
	require.Error(t, next.TransferLeadership("nobody"))
}

// TestNewcomerGetsTheStateAsAnImage checks that a node which joins after a snapshot gets the image and the entries after
// it, and not the whole log. The logs are in memory: with logs on disk, the new node got the whole log.
func TestNewcomerGetsTheStateAsAnImage(t *testing.T) {
	c := newCluster(t, 3, func(_ int, o *raftstore.Options) {
		o.SnapshotBytes, o.Log = 4<<10, append(o.Log, raft.NewInmemStore())
	})
	leader, _ := c.leader()
	for i := range 400 {
		c.take(leader, string(rune('a'+i%26)), 100)
	}
	require.NoError(t, leader.Snapshot())
	c.take(leader, "key", 10)
	log := raft.NewInmemStore()
	node, err := c.grow(3, func(o *raftstore.Options) { o.Log = append(o.Log, log) })
	require.NoError(t, err)
	c.sees(leader, 4, 4)
	require.Eventually(t, func() bool { return node.Len(0) == leader.Len(0) }, patience, 10*time.Millisecond)
	c.agree()
	first, err := log.FirstIndex()
	require.NoError(t, err)
	require.Greater(t, first, uint64(1), "the log must begin after the image")
}

func TestNodesThatMayNotJoin(t *testing.T) {
	c := newCluster(t, 3, func(_ int, o *raftstore.Options) { o.Secret = []byte("secret") })
	c.leader()
	t.Run("a wrong secret", func(t *testing.T) {
		_, err := c.grow(8, func(o *raftstore.Options) { o.Secret = []byte("guess") })
		require.NoError(t, err)
	})
	t.Run("the id of a node that lost its disk", func(t *testing.T) {
		c.stop(2)
		_, err := c.grow(2, func(o *raftstore.Options) { o.Secret = []byte("secret") })
		require.NoError(t, err)
	})
	t.Run("a node of another cluster", func(t *testing.T) {
		other := newCluster(
			t, 1, func(_ int, o *raftstore.Options) { o.NodeID, o.Secret = "stranger", []byte("secret") })
		other.leader()
		c.order(func(leader *raftstore.Node) error {
			err := leader.AddNode("stranger", other.opts[0].RaftAddr)
			if err != nil && !strings.Contains(err.Error(), "is a member already") {
				return err
			}
			return nil
		})
	})
	leader, _ := c.leader()
	require.Never(t, func() bool {
		nodes := leader.Topology().Nodes
		for _, m := range nodes {
			if m.ID == "n8" || m.ID == "stranger" && (m.Voter || m.Up) {
				return true
			}
		}
		return false
	}, 3*time.Second, 50*time.Millisecond)
	c.take(leader, "key", 10)
}

func TestDataDirectoriesAreKeptApart(t *testing.T) {
	c := newCluster(t, 1, nil)
	c.leader()
	c.stop(0)
	t.Run("of another node", func(t *testing.T) {
		o := c.opts[0]
		o.NodeID, o.Listener = "other", listener(t)
		_, err := raftstore.OpenAlone(o)
		require.ErrorIs(t, err, failure.ErrOtherNode)
		require.ErrorContains(t, err, `it is of node "n0", and this is node "other": start it with --node-id n0, or`)
	})
	t.Run("of a server that ran alone", func(t *testing.T) {
		dir := t.TempDir()
		alone, err := persistence.Open(persistence.Options{DataDir: dir})
		require.NoError(t, err)
		require.NoError(t, alone.Close())
		o := c.opts[0]
		o.DataDir, o.Listener = dir, listener(t)
		_, err = raftstore.OpenAlone(o)
		require.ErrorIs(t, err, failure.ErrStandalone)
		require.ErrorContains(t, err, ": start without these flags, or move the state: ")
	})
	t.Run("a server that runs alone", func(t *testing.T) {
		_, err := persistence.Open(persistence.Options{DataDir: c.opts[0].DataDir, Table: engine.Options{}})
		require.ErrorIs(t, err, persistence.ErrClustered)
	})
	t.Run("in use", func(t *testing.T) {
		c.restart(0)
		o := c.opts[0]
		o.Listener = listener(t)
		_, err := raftstore.OpenAlone(o)
		require.ErrorIs(t, err, persistence.ErrInUse)
	})
}

func listener(t *testing.T) net.Listener { return listenAt(t, freeport.Addr(t)) }

func TestClocksOfOneKind(t *testing.T) {
	c := newCluster(t, 2, func(i int, o *raftstore.Options) { o.TestClock = i == 0 })
	require.ErrorIs(t, <-c.fatal, failure.ErrClockKind)
}

// TestTheRemovedAreNotPromoted checks that a promotion which was decided in an older configuration does not bring a
// removed node back.
func TestTheRemovedAreNotPromoted(t *testing.T) {
	c := newCluster(t, 3, nil)
	leader, at := c.leader()
	gone := c.opts[(at+1)%3]
	seen := leader.Configuration()
	require.NotZero(t, seen)
	leader, _ = c.remove(gone.NodeID)
	leader.GiveVote(gone.NodeID, gone.RaftAddr, seen)
	c.sees(leader, 2, 2)
	require.ErrorIs(t, <-c.fatal, raftstore.ErrRemoved)
}
