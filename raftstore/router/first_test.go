package router_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/raftstore/router"
)

// TestALateJoinOfARemovedNodeIsUndone checks a node whose join of a group was appended after the first group had
// removed it: the leader of the group removes it. The group does not take in a node that the first group lacks.
func TestALateJoinOfARemovedNodeIsUndone(t *testing.T) {
	const groups = 4
	c := newTier(t, 3, groups)
	for _, n := range c.nodes {
		c.led(n)
	}
	n := c.nodes[0]
	gone := listen(t, "127.0.0.1:0") // answers nothing
	defer gone.Close()
	for g := range groups {
		c.added(func() error { return n.Group(g).AddNode("gone", gone.Addr().String()) })
	}
	// The first group alone removes the node, as if the joins of the other groups came after the removal.
	c.removed(func() error { return n.Group(0).RemoveNode("gone") })
	for g := range groups {
		require.Eventually(t, func() bool { return n.Group(g).Topology().Member("gone") == nil }, patience,
			10*time.Millisecond, "group %d has a node that the first group has removed", g)
	}
	require.Eventually(t, func() bool {
		err := n.Group(1).AddNode("stranger", gone.Addr().String())
		require.Error(t, err)
		return err.Error() == `the first group does not have node "stranger"`
	}, patience, 10*time.Millisecond)
	for _, n := range c.nodes {
		c.keepsMembers(n, groups)
	}
	require.Empty(t, c.fatal)
}

// keepsMembers checks that all groups have the nodes of the tier and no other.
func (c *tier) keepsMembers(n *router.Node, groups int) {
	c.t.Helper()
	for g := range groups {
		require.Eventually(c.t, func() bool { return len(n.Group(g).Topology().Nodes) == len(c.nodes) }, patience,
			10*time.Millisecond)
	}
}
