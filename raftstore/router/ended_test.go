package router_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/engine/hashslot"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore"
	"github.com/weir-project/weir/raftstore/router"
)

// keyIn returns a key of a group.
func keyIn(group, groups int) string {
	return "key{" + hashslot.Tag(hashslot.OfGroup(group, groups).First) + "}"
}

// hasEnded waits until a group has ended on a node. It requires that no other group has.
func (c *tier) hasEnded(n *router.Node, group int) {
	c.t.Helper()
	require.Eventually(c.t, func() bool { return n.Topology().Groups[group].Ended != "" }, patience,
		10*time.Millisecond,
		"the group must end on the node")
	require.Equal(c.t, 1, n.Topology().Ended(), "%+v", n.Topology().Groups)
}

// servesAllBut checks that a node decides for all groups but one. Operations on that group get a status which tells
// that nothing was counted.
func (c *tier) servesAllBut(n *router.Node, group, groups int) {
	c.t.Helper()
	for g := range groups {
		key := keyIn(g, groups)
		if g == group {
			err := n.Decide([]engine.Op{quota(key, 1_000_000)}, make([]engine.Decision, 1))
			require.ErrorIs(c.t, err, limiter.ErrClusterDown)
			continue
		}
		require.EqualValues(c.t, 1, c.take(n, []string{key}))
	}
}

// endsOnce waits for the only reason why a node ends its process.
func (c *tier) endsOnce(reason error) {
	c.t.Helper()
	select {
	case err := <-c.fatal:
		require.ErrorIs(c.t, err, reason)
	case <-time.After(patience):
		require.Fail(c.t, "the process must end")
	}
}

// TestARemovedGroupEndsAlone: a node that is removed from one group closes this group, also after a restart, and serves
// the others. The removal from the others ends the process once.
func TestARemovedGroupEndsAlone(t *testing.T) {
	const groups, group, node = 4, 2, 2
	const bound = 64 << 20
	c := newTier(t, 3, groups, func(o *raftstore.Options) { o.Table.MaxMemoryBytes = bound })
	for _, n := range c.nodes {
		c.led(n)
	}
	c.removed(func() error { return c.nodes[0].RemoveFromGroup("n2", group) })
	c.hasEnded(c.nodes[node], group)
	require.EqualValues(t, bound, c.nodes[node].Stats().MaxMemoryBytes, "the other groups may use its part")
	c.servesAllBut(c.nodes[node], group, groups)
	require.EqualValues(t, 1, c.take(c.nodes[0], []string{keyIn(group, groups)}), "the other nodes serve the group")

	c.stop(node)
	c.restart(node)
	c.hasEnded(c.nodes[node], group)
	c.servesAllBut(c.nodes[node], group, groups)
	require.Empty(t, c.fatal)

	c.removed(func() error { return c.nodes[0].RemoveNode("n2") })
	c.endsOnce(raftstore.ErrRemoved)
	c.stop(node)
	o := c.opts[node]
	o.Listener = listen(t, o.RaftAddr)
	_, err := router.Open(o)
	require.ErrorIs(t, err, raftstore.ErrRemoved)
	require.Empty(t, c.fatal)
	require.Eventually(t, func() bool { // a busy machine may hold an election meanwhile
		err := c.nodes[0].RemoveNode("n2")
		require.Error(t, err)
		return strings.Contains(err.Error(), "no node")
	}, patience, 10*time.Millisecond)
}

// TestAReplacedNodeEndsOnce checks a node that lost its disk, was removed and is started again. It ends once to take
// the id of a new incarnation, and then joins all groups under that id.
func TestAReplacedNodeEndsOnce(t *testing.T) {
	const groups, node = 4, 2
	c := newTier(t, 3, groups)
	for _, n := range c.nodes {
		c.led(n)
	}
	c.stop(node)
	c.opts[node].DataDir = t.TempDir()
	c.removed(func() error { return c.nodes[0].RemoveNode("n2") })
	c.restart(node)
	c.endsOnce(raftstore.ErrRemovedID)
	c.stop(node)
	c.restart(node)
	var name string
	for g := range groups {
		require.Eventually(t, func() bool {
			topology := c.nodes[node].Group(g).Topology()
			self := topology.Member(topology.Self)
			if g == 0 {
				name = topology.Self
			}
			return self != nil && self.Voter && self.ID == name
		}, patience, 10*time.Millisecond, "the node must join group %d by the name %q", g, name)
	}
	require.NotEqual(t, "n2", name)
	c.led(c.nodes[node])
	require.Empty(t, c.fatal)
}
