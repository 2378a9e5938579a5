package raftstore_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore"
)

// decideOn decides operations on a node, and repeats them until that succeeds.
func (c *cluster) decideOn(n *raftstore.Node, ops ...engine.Op) []engine.Decision {
	c.t.Helper()
	out := make([]engine.Decision, len(ops))
	require.Eventually(c.t, func() bool { return n.Decide(ops, out) == nil }, patience, 10*time.Millisecond)
	return out
}

// refusal returns the error with which a node refuses operations. A node that does not know its leader yet cannot tell.
func (c *cluster) refusal(decide func([]engine.Op, []engine.Decision) error, ops ...engine.Op) (err error) {
	c.t.Helper()
	require.Eventually(c.t, func() bool {
		err = decide(ops, make([]engine.Decision, len(ops)))
		return !errors.Is(err, limiter.ErrClusterDown)
	}, patience, 10*time.Millisecond)
	return err
}

func quota(key string, most int64) engine.Op {
	return engine.Op{Key: []byte(key), Cost: 1,
		Limit: engine.Limit{Algorithm: engine.FixedWindow, Mode: engine.Forever, Max: most}}
}

// TestDenialsNeedNoLog checks that denials need no log entries while a key is denied, and equal the denials that the
// log would give.
func TestDenialsNeedNoLog(t *testing.T) {
	c := newCluster(t, 3, nil)
	leader, _ := c.leader()
	c.decideOn(leader, quota("key", 1), quota("key", 1))
	before := leader.Topology().CommitIndex
	for range 50 {
		for _, d := range c.decideOn(leader, quota("key", 1), quota("key", 1)) {
			require.Equal(t, engine.Decision{RetryMs: -1, ResetMs: -1, Limit: 1}, d)
		}
	}
	require.Less(t, leader.Topology().CommitIndex, before+20,
		"100 denials must add no entries, apart from a few ticks")
	denied := uint64(0)
	for _, n := range c.nodes { // another node may lead if this machine stood still
		denied += uint64(n.Stats().Denied[engine.FixedWindow])
	}
	require.GreaterOrEqual(t, denied, uint64(101), "every denial must count, and a repeated call counts again")

	out := c.decideOn(leader, engine.Op{Code: engine.OpReset, Key: []byte("key"), Cost: 1},
		quota("key", 1), quota("key", 1))
	require.EqualValues(t, 1, out[1].Allowed, "the reset earlier in the pipeline must apply first")
	require.Zero(t, out[2].Allowed)
	c.agree()
}

// TestADeposedLeaderDeniesNothing checks that a leader without a majority returns an error instead of a denial, also
// if it asks the majority early. A later leader may have changed the state.
func TestADeposedLeaderDeniesNothing(t *testing.T) {
	for name, denied := range map[string]int{"denies at times": 1, "denies all": 20} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// With this heartbeat the leader still believes that it leads after the other nodes have stopped.
			c := newCluster(t, 3, func(_ int, o *raftstore.Options) { o.Heartbeat = 2 * time.Second })
			leader, at := c.leader()
			c.decideOn(leader, quota("key", 1), quota("key", 1))
			for range denied {
				require.Zero(t, c.decideOn(leader, quota("key", 1))[0].Allowed)
			}
			for i := range c.nodes {
				if i != at {
					c.stop(i)
				}
			}
			err := leader.Decide([]engine.Op{quota("key", 1)}, make([]engine.Decision, 1))
			require.Error(t, err)
			require.NotErrorIs(t, err, limiter.ErrUnknownOutcome, "the error must say that nothing was proposed")
		})
	}
}

// TestMemoryIsBoundedTheSameEverywhere checks that evictions at full memory keep every node within the bound and in
// the same state. The key that has used most must stay.
func TestMemoryIsBoundedTheSameEverywhere(t *testing.T) {
	const bound = 4 << 20
	c := newCluster(t, 3, func(_ int, o *raftstore.Options) {
		o.Table.MaxMemoryBytes, o.Table.Shards = bound, 4
	})
	leader, _ := c.leader()
	offender := quota("offender", 1_000_000)
	offender.Cost = 500_000
	c.decideOn(leader, offender)
	for i := range 120 {
		ops := make([]engine.Op, 1000)
		for k := range ops {
			ops[k] = engine.Op{Key: fmt.Appendf(nil, "flood:%d:%d", i, k), Cost: 1, Limit: engine.Limit{
				Algorithm: engine.TokenBucket, Rate: engine.Rate{Units: 1, PerNs: int64(time.Hour)}, Max: 10,
			}}
		}
		c.decideOn(leader, ops...)
	}
	stats := leader.Stats()
	require.Less(t, stats.MemoryBytes, int64(bound))
	require.NotZero(t, stats.Evicted)
	require.NotZero(t, stats.ForgivenUnits)
	require.EqualValues(t, 499_999, c.decideOn(leader, quota("offender", 1_000_000))[0].Remaining,
		"the offender must not be evicted")
	c.agree()
}

func TestFullMemoryMayDeny(t *testing.T) {
	const bound = 4 << 20
	c := newCluster(t, 1, func(_ int, o *raftstore.Options) {
		o.Table.MaxMemoryBytes, o.Table.WhenFull = bound, engine.Deny
	})
	leader, _ := c.leader()
	log := quota("log", 1)
	log.Limit = engine.Limit{Algorithm: engine.SlidingLog, WindowNs: int64(time.Hour), Max: 1}
	c.decideOn(leader, quota("known", 5), log)
	refused := false
	for i := 0; i < 120_000 && !refused; i += 1000 {
		ops := make([]engine.Op, 1000)
		for k := range ops {
			ops[k] = quota(fmt.Sprint(i+k), 5)
		}
		for _, d := range c.decideOn(leader, ops...) {
			refused = refused || d.Status == engine.OutOfMemory
		}
	}
	require.True(t, refused)
	require.LessOrEqual(t, leader.Stats().MemoryBytes, int64(bound),
		"keys must be refused before memory exceeds the bound")
	require.EqualValues(t, 3, c.decideOn(leader, quota("known", 5))[0].Remaining, "a known key must still be served")
	for i := range 10_000 { // Denials may take two keys for one: 2 or 3 in so many
		out := c.decideOn(leader, quota(fmt.Sprint("more", i), 5), log)
		require.Equal(t, engine.OutOfMemory, out[0].Status)
		require.Zero(t, out[1].Allowed)
		require.Equal(t, engine.OK, out[1].Status, "a request that the limit denies must be denied, not refused")
	}
	out := c.decideOn(leader, quota("more", 5), engine.Op{Code: engine.OpReset, Key: []byte("log"), Cost: 1}, log)
	require.Equal(t, engine.OutOfMemory, out[2].Status, "an operation must not overtake another one on its key")
}
