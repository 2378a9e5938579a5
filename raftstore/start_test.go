package raftstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore"
)

// startOps returns n operations on separate keys with one unit each.
func startOps(n int) []engine.Op {
	ops := make([]engine.Op, n)
	for i := range ops {
		ops[i] = engine.Op{Key: fmt.Append(nil, "start", i), Cost: 1, Limit: engine.Limit{
			Algorithm: engine.TokenBucket, Rate: engine.Rate{Units: 1, PerNs: int64(24 * time.Hour)}, Max: 1}}
	}
	return ops
}

// TestStart checks that calls that were started on any node are answered as Decide answers them, and that Start does
// nothing with operations that do not make exactly one entry.
func TestStart(t *testing.T) {
	c := newCluster(t, 3, func(_ int, o *raftstore.Options) { o.MaxDecisionAge = patience }) // for a busy machine
	c.leader()
	dry := startOps(2)
	dry[0].Dry, dry[1].Dry = true, true
	_, started := c.nodes[0].Start(dry, make([]engine.Decision, 2))
	require.False(t, started, "no entry is needed")
	_, started = c.nodes[0].Start(startOps(2000), make([]engine.Decision, 2000))
	require.False(t, started, "two entries are needed")
	for i, n := range c.nodes {
		ops := startOps(10 * (i + 1))[10*i:]
		out := make([]engine.Decision, len(ops))
		require.Eventually(t, func() bool { // a follower may not know the leader yet
			wait, started := n.Start(ops, out)
			require.True(t, started)
			return wait() == nil
		}, patience, time.Millisecond)
		for _, d := range out {
			require.EqualValues(t, 1, d.Allowed)
		}
		for _, d := range c.decideOn(n, ops...) {
			require.Zero(t, d.Allowed)
		}
	}
}

// TestStartAtAClosedNode checks that wait returns the error of a call that was not queued.
func TestStartAtAClosedNode(t *testing.T) {
	c := newCluster(t, 1, nil)
	n, _ := c.leader()
	c.stop(0)
	wait, started := n.Start(startOps(1), make([]engine.Decision, 1))
	require.True(t, started)
	require.ErrorIs(t, wait(), limiter.ErrTryAgain)
}
