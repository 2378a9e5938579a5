package router_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/raftstore"
)

// TestChangesWithoutOneLeader checks the commands of an operator while one of four groups has no leader: the other
// groups change, the answer says how many did, and the repeated command completes the change.
func TestChangesWithoutOneLeader(t *testing.T) {
	const groups, leaderless = 4, 2
	c := newTier(t, 3, groups)
	for _, n := range c.nodes {
		c.led(n)
	}
	n := c.nodes[0]
	c.removed(func() error { return n.RemoveFromGroup("n2", leaderless) })
	c.stop(1) // two of three nodes have a majority, except in the group of n0 and n1
	require.Eventually(t, func() bool {
		led := 0
		for _, g := range n.Topology().Groups {
			if g.Leader != "" && g.Leader != "n1" {
				led++
			}
		}
		return led == groups-1 && n.Topology().Groups[leaderless].Leader == ""
	}, patience, 10*time.Millisecond)

	changed := func(how string, change func() error) {
		t.Helper()
		var err error
		require.Eventually(t, func() bool { // a node that just became leader may refuse for a moment
			err = change()
			return err != nil && len(err.Error()) >= len(how) && err.Error()[:len(how)] == how
		}, patience, 10*time.Millisecond)
		require.ErrorContains(t, err, "group 2: ")
	}
	joining := listen(t, "127.0.0.1:0")
	defer joining.Close()
	add := func() error { return n.AddNode("n3", joining.Addr().String()) }
	remove := func() error { return n.RemoveNode("n1") }
	changed("3 of 4 groups", func() error { return n.TransferLeadership("n0") })
	changed("2 of 4 groups", remove)
	require.NotNil(t, n.Group(0).Topology().Member("n1"), "the first group keeps a node that another group has")
	changed("3 of 4 groups", add)

	c.restart(1) // groups 1 and 3 have ended there
	require.Eventually(t, func() bool { return n.Topology().Groups[leaderless].Leader != "" }, patience,
		10*time.Millisecond)
	c.added(add)
	c.removed(remove)
	for i := range groups {
		require.Eventually(t, func() bool {
			topology := n.Group(i).Topology()
			return topology.Member("n1") == nil && topology.Member("n3") != nil
		}, patience, 10*time.Millisecond, "group %d", i)
	}
	c.endsOnce(raftstore.ErrRemoved) // n1 has no group any more
	require.Empty(t, c.fatal)
}
