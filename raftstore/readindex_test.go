package raftstore_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore"
)

// TestAFollowerShowsWhatWasDecided checks that after a ReadIndex, a read of any node contains all acknowledged
// decisions at once.
func TestAFollowerShowsWhatWasDecided(t *testing.T) {
	newCluster(t, 3, nil).showsWhatWasDecided()
}

func (c *cluster) showsWhatWasDecided() {
	c.leader()
	for i := range 60 {
		key := fmt.Sprint("key", i)
		c.take(c.nodes[i%3], key, 10)
		c.requireShown(c.nodes[i/3%3], key, 1)
	}
}

// requireShown reads a key until the node answers. The answer must be right.
func (c *cluster) requireShown(n *raftstore.Node, key string, used int64) {
	c.t.Helper()
	require.Eventually(c.t, func() bool { return n.ReadIndex() == nil }, patience, time.Millisecond)
	info, ok := n.Inspect([]byte(key))
	require.True(c.t, ok, "%s is not there", key)
	require.Equal(c.t, used, info.Used, key)
}

// TestReadIndexWithoutALeader checks that a node without a majority answers no linearizable read.
func TestReadIndexWithoutALeader(t *testing.T) {
	c := newCluster(t, 3, nil)
	_, at := c.leader()
	left := c.nodes[(at+1)%3]
	c.stop(at)
	c.stop((at + 2) % 3)
	require.Eventually(t, func() bool { return left.Topology().Leader == "" }, patience, 10*time.Millisecond)
	require.ErrorIs(t, left.ReadIndex(), limiter.ErrClusterDown)
}

// TestARollingRestartLosesNoRead restarts one node after the other and waits until each is ready, as /readyz reports.
// Its own state then contains everything acknowledged before, so no node restarts while another still catches up.
func TestARollingRestartLosesNoRead(t *testing.T) {
	c := newCluster(t, 3, nil)
	c.leader()
	writes := int64(0)
	write := func(but int) {
		for i := range 3 {
			if i != but {
				c.take(c.nodes[i], "key", 1000)
				writes++
			}
		}
	}
	for i := range c.nodes {
		write(-1)
		c.stop(i)
		for range 20 {
			write(i)
		}
		c.restart(i)
		require.Eventually(t, func() bool { return c.nodes[i].ReadIndex() == nil }, patience, time.Millisecond)
		info, _ := c.nodes[i].Inspect([]byte("key"))
		require.Equal(t, writes, info.Used, "a node that reports ready must have every acknowledged write")
		for _, n := range c.nodes {
			c.requireShown(n, "key", writes)
		}
	}
}

// TestALeaderShowsWhatAFollowerHasShown checks a leader that applies an entry later than a follower. Until it has
// applied the entry, it answers neither a read nor a denial. A take may be too old before it becomes an entry, so the
// test repeats it until the follower shows it.
func TestALeaderShowsWhatAFollowerHasShown(t *testing.T) {
	c := newCluster(t, 3, func(_ int, o *raftstore.Options) { o.MaxDecisionAge = 300 * time.Millisecond })
	leader, at := c.leader()
	follower := c.nodes[(at+1)%3]
	for range 2 {
		c.take(leader, "denied", 1) // the second take is denied, and later ones are previewed first
	}
	release := sync.OnceFunc(leader.HoldApply())
	defer release()
	shown := func() bool {
		_, ok := follower.Inspect([]byte("k"))
		return ok
	}
	taken := make(chan struct{})
	go func() {
		defer close(taken)
		for began := time.Now(); !shown() && time.Since(began) < patience; {
			_, _ = takeOnce(leader, "k")
		}
	}()
	require.Eventually(t, shown, patience, time.Millisecond)
	require.ErrorIs(t, leader.ReadIndex(), limiter.ErrTryAgain)
	require.ErrorIs(t, follower.ReadIndex(), limiter.ErrTryAgain)
	_, err := takeOnce(leader, "denied")
	require.ErrorIs(t, err, limiter.ErrTryAgain, "the error must say that nothing was counted")
	release()
	<-taken
	c.requireShown(leader, "k", 1)
}

// takeOnce asks once for the only unit of a bucket, without repeating.
func takeOnce(n *raftstore.Node, key string) (engine.Decision, error) {
	ops := []engine.Op{{
		Key: []byte(key), Cost: 1,
		Limit: engine.Limit{Algorithm: engine.TokenBucket, Rate: engine.Rate{Units: 1, PerNs: int64(24 * time.Hour)},
			Max: 1},
	}}
	out := make([]engine.Decision, 1)
	err := n.Decide(ops, out)
	return out[0], err
}
