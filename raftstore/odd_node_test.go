//go:build weirfaults

package raftstore_test

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/faults"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore"
)

// stopped is a node that ended itself, and its reason.
type stopped struct {
	node   int
	reason error
}

// oddCluster is a cluster that knows which of its nodes ended themselves.
type oddCluster struct {
	*cluster
	ended chan stopped
}

// newClusterWithOdd starts three nodes, one of which computes other decisions than the others.
func newClusterWithOdd(t *testing.T, odd int) *oddCluster {
	c := &oddCluster{ended: make(chan stopped, 100)}
	c.cluster = newCluster(t, 3, func(i int, o *raftstore.Options) {
		o.Heartbeat, o.Durability = quick, raftstore.OS // a dispute waits ten times the heartbeat for the voters
		o.OnFatal = func(err error) { c.ended <- stopped{i, err}; runtime.Goexit() }
	})
	c.leader()
	c.stop(odd)
	c.opts[odd].Faults = faults.Of(faults.WrongDecisions)
	c.restart(odd)
	return c
}

// decideUntilStop decides on every running node until one ends itself.
func (c *oddCluster) decideUntilStop() (end stopped) {
	c.t.Helper()
	out := make([]engine.Decision, 1)
	require.Eventually(c.t, func() bool {
		for _, n := range c.nodes {
			if n != nil {
				n.Decide([]engine.Op{quota("key", 1_000_000)}, out)
			}
		}
		select {
		case end = <-c.ended:
			return true
		default:
			return false
		}
	}, patience, 1)
	return end
}

// TestAnOddFollowerStopsAlone checks that a follower with different results stops for good, and that the other nodes
// continue.
func TestAnOddFollowerStopsAlone(t *testing.T) {
	const odd = 0
	c := newClusterWithOdd(t, odd)
	c.moveTo(1)
	c.stopsForGood(odd)
	c.goOnWithout(odd)
}

// TestAnOddLeaderStopsAlone checks that a leader with different results stops for good. The followers, which agree
// with each other, continue.
func TestAnOddLeaderStopsAlone(t *testing.T) {
	const odd = 0
	c := newClusterWithOdd(t, odd)
	c.moveTo(odd)
	c.stopsForGood(odd)
	c.goOnWithout(odd)
}

// stopsForGood decides until the odd node has stopped for good. A node that stopped in a dispute starts again.
func (c *oddCluster) stopsForGood(odd int) {
	c.t.Helper()
	end := c.decideUntilStop()
	for errors.Is(end.reason, raftstore.ErrDisputed) { // a voter was not up yet
		c.stop(end.node)
		c.restart(end.node)
		end = c.decideUntilStop()
	}
	require.ErrorIs(c.t, end.reason, raftstore.ErrDiverged)
	require.Equal(c.t, odd, end.node)
}

// goOnWithout stops the odd node. The other nodes must decide, also after a restart, and the odd node must not start
// again.
func (c *oddCluster) goOnWithout(odd int) {
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
	require.Empty(c.t, c.ended, "another node stopped as well")
	o := c.opts[odd]
	o.Listener = nil
	_, err := raftstore.OpenAlone(o)
	require.ErrorIs(c.t, err, raftstore.ErrDiverged)
}

// TestWhereNoMajorityCanBeAskedTheFollowerStops checks a leader and a follower that differ while the third node is
// down. They cannot know which of them is wrong, so the follower stops and may start again. When all three run, the
// wrong node stops for good.
func TestWhereNoMajorityCanBeAskedTheFollowerStops(t *testing.T) {
	const odd, down = 0, 2
	c := newClusterWithOdd(t, odd)
	c.moveTo(1)
	c.stop(down)
	end := c.decideUntilStop()
	require.ErrorIs(t, end.reason, raftstore.ErrDisputed)
	c.stop(end.node)
	time.Sleep(4 * time.Second) // longer than a second check
	require.Empty(t, c.ended, "the leader stopped as well, after it lost its only follower")
	c.restart(down)
	c.restart(end.node)
	c.stopsForGood(odd)
	c.goOnWithout(odd)
}

// TestAnOddNodeIsJudgedByEntriesThatOthersRemember checks a node that computes a wrong state of more entries than the
// others remember the histories of. It finds the difference at an old entry, and is judged by a newer one.
func TestAnOddNodeIsJudgedByEntriesThatOthersRemember(t *testing.T) {
	const odd, entries = 0, 5000
	c := newClusterWithOdd(t, odd)
	c.stop(odd)
	leader, _ := c.leader()
	for range entries {
		c.take(leader, "key", 1_000_000)
	}
	c.restart(odd)
	select {
	case end := <-c.ended:
		require.ErrorIs(t, end.reason, raftstore.ErrDiverged)
		require.Equal(t, odd, end.node)
	case <-time.After(patience):
		require.Fail(t, "the odd node goes on")
	}
}

// TestADisputeWithholdsAnswers checks that a node returns no decision and no read during a divergence check.
func TestADisputeWithholdsAnswers(t *testing.T) {
	c := newCluster(t, 1, nil)
	leader, _ := c.leader()
	out := make([]engine.Decision, 1)
	require.NoError(t, leader.Decide([]engine.Op{quota("key", 5)}, out))
	leader.Dispute(true)
	require.ErrorIs(t, leader.Decide([]engine.Op{quota("key", 5)}, out), limiter.ErrUnknownOutcome)
	require.ErrorIs(t, leader.ReadIndex(), limiter.ErrTryAgain)
	leader.Dispute(false)
	require.NoError(t, leader.ReadIndex())
	require.NoError(t, leader.Decide([]engine.Op{quota("key", 5)}, out))
}
