package raftstore_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/raftstore"
	"github.com/weir-project/weir/raftstore/internal/identity"
)

// wipe stops a node, if it runs, and starts it with an empty directory.
func (c *cluster) wipe(i int) {
	c.t.Helper()
	if c.nodes[i] != nil {
		c.nodes[i].Close()
	}
	c.opts[i].DataDir = c.t.TempDir()
	c.restart(i)
}

// again restarts a node that stopped because of err.
func (c *cluster) again(i int, err error) {
	c.t.Helper()
	c.died(err)
	c.nodes[i].Close()
	c.restart(i)
}

// died waits until a node stops because of err, and returns the whole error.
func (c *cluster) died(err error) (why error) {
	c.t.Helper()
	select {
	case why = <-c.fatal:
		require.ErrorIs(c.t, why, err)
	case <-time.After(patience):
		require.Fail(c.t, "no node stopped")
	}
	return why
}

// TestAnIDIsSpentOnce checks that a removed node which returns with an empty directory joins under a new id each time
// it loses its disk.
func TestAnIDIsSpentOnce(t *testing.T) {
	c := newCluster(t, 3, nil)
	leader, at := c.leader()
	c.take(leader, "key", 10)
	lost := (at + 1) % 3
	id := c.opts[lost].NodeID
	seen := map[string]bool{id: true}
	c.stop(lost)
	for self := id; len(seen) < 3; {
		c.wipe(lost)
		require.ErrorContains(t, c.died(raftstore.ErrLostState), fmt.Sprintf("%q", self),
			"the wiped node must be refused, because its id is still a member")
		leader, _ = c.remove(self)
		c.sees(leader, 2, 2)
		require.ErrorIs(t, leader.AddNode(id, c.opts[lost].RaftAddr), raftstore.ErrRemovedID)
		c.wipe(lost)
		c.again(lost, raftstore.ErrRemovedID)
		c.sees(leader, 3, 3)
		require.ErrorContains(t, leader.RemoveNode(id), "it rejoined as",
			"the error must say that a later incarnation replaced the id")
		self = c.nodes[lost].Topology().Self
		require.True(t, strings.HasPrefix(self, id+"~"), self)
		require.False(t, seen[self], "each incarnation must have an id of its own")
		seen[self] = true
		c.take(c.nodes[lost], "key", 10)
		c.agree()
	}
	c.stop(lost)
	c.restart(lost)
	c.sees(leader, 3, 3)
	require.True(t, seen[c.nodes[lost].Topology().Self], "a restart must keep the id")
	c.moveTo(lost) // by its configured id
}

// TestSpentIDsAreRemembered checks that nodes remember removed ids from an image and from the log.
func TestSpentIDsAreRemembered(t *testing.T) {
	c := newCluster(t, 4, nil)
	c.leader()
	for i := 3; i > 1; i-- {
		c.stop(i)
		c.remove(c.opts[i].NodeID)
		c.allSee(i)
		if i == 3 {
			for _, n := range c.nodes[:i] {
				c.take(n, "key", 10)
				require.NoError(t, n.Snapshot())
			}
		}
	}
	for i := range 2 {
		c.stop(i)
	}
	for i := range 2 {
		c.restart(i)
	}
	for _, spent := range c.opts[2:] {
		c.order(func(leader *raftstore.Node) error {
			err := leader.AddNode(spent.NodeID, spent.RaftAddr)
			require.Error(t, err)
			if errors.Is(err, raftstore.ErrRemovedID) {
				return nil
			}
			return err // the node no longer leads
		})
	}
}

// TestARemovedNodeStaysWhoItIs checks that a removed node keeps its id and stays removed after a restart with its own
// directory at another address.
func TestARemovedNodeStaysWhoItIs(t *testing.T) {
	c := newCluster(t, 3, nil)
	_, at := c.leader()
	lost := (at + 1) % 3
	c.stop(lost)
	leader, at := c.remove(c.opts[lost].NodeID)
	c.sees(leader, 2, 2)
	c.moveTo(at) // the log now has an entry that the removed node lacks
	l := listener(t)
	c.opts[lost].RaftAddr = l.Addr().String()
	require.NoError(t, l.Close())
	c.restart(lost)
	c.died(raftstore.ErrRemoved)
	self, err := raftstore.OwnerOf(c.opts[lost].DataDir)
	require.NoError(t, err)
	require.Equal(t, c.opts[lost].NodeID, self)
}

// TestANodeThatWasRemovedWhileItWasDownEnds checks that such a node learns of its removal from the other nodes. No
// leader tells it which of its entries are committed. So the newest configuration that it knows to be committed
// comes from its image, or it knows none. The image of a node that joined by it is older than its membership. A node
// that stopped soon after it joined may not have recorded its membership.
func TestANodeThatWasRemovedWhileItWasDownEnds(t *testing.T) {
	for name, of := range map[string]struct{ byImage, unrecorded bool }{
		"without an image": {}, "with an older image": {byImage: true}, "soon after it joined": {unrecorded: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 3, nil)
			leader, _ := c.leader()
			for i := range 100 {
				c.take(leader, string(rune('a'+i%26)), 100)
			}
			if of.byImage {
				require.NoError(t, leader.Snapshot())
				require.NoError(t, leader.Snapshot()) // the log keeps no entry before the first
			}
			node, err := c.grow(3, nil)
			require.NoError(t, err)
			c.sees(leader, 4, 4)
			require.Eventually(t, node.Joined, patience, time.Millisecond)
			c.stop(3)
			if of.unrecorded {
				forgetMembership(t, c.opts[3].DataDir)
			}
			c.remove(c.opts[3].NodeID)
			for i := range 3 {
				c.stop(i) // the leader may still be sending the removal
			}
			for i := range 3 {
				c.restart(i)
			}
			c.leader()
			c.restart(3)
			c.died(raftstore.ErrRemoved)
		})
	}
}

// forgetMembership removes the record that a stopped node has been a member.
func forgetMembership(t *testing.T, dir string) {
	id, ok, err := identity.Read(vfs.Default, dir)
	require.NoError(t, err)
	require.True(t, ok && id.Joined)
	id.Joined, id.JoinedAt = false, 0
	require.NoError(t, identity.Write(vfs.Default, dir, id))
}

// TestGivenIDsLeaveSpaceForIncarnations checks that a configured id leaves space for the suffix of a later
// incarnation, and contains no "~".
func TestGivenIDsLeaveSpaceForIncarnations(t *testing.T) {
	long := strings.Repeat("n", 56)
	for id, want := range map[string]string{long: "", long + "n": "1 to 56 characters", "a~b": `no "~"`, "": "1 to"} {
		for _, kept := range []raftstore.Durability{raftstore.Fsync, raftstore.Memory} {
			c := &cluster{t: t}
			o := c.options(0, "127.0.0.1:1")
			o.NodeID, o.Durability, o.Listener = id, kept, listener(t)
			n, err := raftstore.OpenAlone(o)
			if want == "" {
				require.NoError(t, err)
				require.NoError(t, n.Close())
				continue
			}
			require.ErrorContains(t, err, want)
			_, err = raftstore.Restore(raftstore.RestoreOptions{NodeID: id, RaftAddr: "127.0.0.1:1"},
				strings.NewReader(""))
			require.ErrorContains(t, err, want)
		}
	}
	c := newCluster(t, 1, nil)
	leader, _ := c.leader()
	require.ErrorContains(t, leader.AddNode("a~b", "127.0.0.1:1"), `no "~"`)
}
