//go:build weirfaults

package raftstore_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/faults"
	"github.com/weir-project/weir/raftstore"
)

// newClusterWithOdd starts three nodes, one of which computes other decisions than the others.
func newClusterWithOdd(t *testing.T, odd int) *cluster {
	c := newCluster(t, 3, nil)
	c.leader()
	c.stop(odd)
	c.opts[odd].Faults = faults.Of(faults.OddDecisions)
	c.restart(odd)
	return c
}

// decideUntilStop sends decisions to nodes until a node stops, and returns the reason.
func (c *cluster) decideUntilStop(n *raftstore.Node, others ...*raftstore.Node) (reason error) {
	c.t.Helper()
	out := make([]engine.Decision, 1)
	require.Eventually(c.t, func() bool {
		for _, n := range append(others, n) {
			n.Decide([]engine.Op{quota("key", 1_000_000)}, out)
		}
		select {
		case reason = <-c.fatal:
			return true
		default:
			return false
		}
	}, patience, 1)
	return reason
}

// TestAnOddFollowerStopsAlone checks that a follower with different results stops for good, and that the other nodes
// continue.
func TestAnOddFollowerStopsAlone(t *testing.T) {
	const odd = 0
	c := newClusterWithOdd(t, odd)
	leader := c.moveTo(1)
	require.ErrorIs(t, c.decideUntilStop(leader), raftstore.ErrDiverged)
	c.goOnWithout(odd)
}

// TestAnOddLeaderStopsAlone checks that a leader with different results stops for good. The followers, which agree
// with each other, continue.
func TestAnOddLeaderStopsAlone(t *testing.T) {
	const odd = 0
	c := newClusterWithOdd(t, odd)
	leader := c.moveTo(odd)
	require.ErrorIs(t, c.decideUntilStop(leader), raftstore.ErrDiverged)
	c.goOnWithout(odd)
}

// goOnWithout stops the odd node. The other nodes must decide, also after a restart, and the odd node must not start
// again.
func (c *cluster) goOnWithout(odd int) {
	c.t.Helper()
	c.nodes[odd].Close()
	c.nodes[odd] = nil
	leader, _ := c.leader()
	c.take(leader, "after", 10)
	for i := range c.nodes {
		if i != odd {
			c.stop(i)
			c.restart(i)
		}
	}
	leader, _ = c.leader()
	require.EqualValues(c.t, 8, c.take(leader, "after", 10).Remaining)
	c.agree()
	require.Empty(c.t, c.fatal, "another node stopped as well")
	o := c.opts[odd]
	o.Listener = nil
	_, err := raftstore.Open(o)
	require.ErrorIs(c.t, err, raftstore.ErrDiverged)
}

// TestWhereNoMajorityCanBeAskedTheFollowerStops checks a leader and a follower that differ while the third node is
// down. They cannot know which of them is wrong, so the follower stops and may start again. When all three run, the
// wrong node stops for good.
func TestWhereNoMajorityCanBeAskedTheFollowerStops(t *testing.T) {
	const odd, down = 0, 2
	c := newClusterWithOdd(t, odd)
	leader := c.moveTo(1)
	c.stop(down)
	require.ErrorIs(t, c.decideUntilStop(leader), raftstore.ErrDisputed)
	c.nodes[odd].Close()
	c.nodes[odd] = nil
	c.restart(down)
	c.restart(odd)
	reason := c.decideUntilStop(leader, c.nodes[down])
	for errors.Is(reason, raftstore.ErrDisputed) { // the third node was not up yet
		c.nodes[odd].Close()
		c.restart(odd)
		reason = c.decideUntilStop(leader, c.nodes[down])
	}
	require.ErrorIs(t, reason, raftstore.ErrDiverged)
	c.goOnWithout(odd)
}

// TestADisputeWithholdsAnswers checks that a node returns no decision and no read during a divergence check.
func TestADisputeWithholdsAnswers(t *testing.T) {
	c := newCluster(t, 1, nil)
	leader, _ := c.leader()
	out := make([]engine.Decision, 1)
	require.NoError(t, leader.Decide([]engine.Op{quota("key", 5)}, out))
	leader.Dispute(true)
	require.ErrorIs(t, leader.Decide([]engine.Op{quota("key", 5)}, out), raftstore.ErrUnknown)
	require.ErrorIs(t, leader.ReadIndex(), raftstore.ErrTryAgain)
	leader.Dispute(false)
	require.NoError(t, leader.ReadIndex())
	require.NoError(t, leader.Decide([]engine.Op{quota("key", 5)}, out))
}
