package raftstore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore"
)

// TestANodeThatLostItsDiskDoesNotVote checks that no leader is elected with the vote of a node that lost its disk. A
// majority acknowledged a decision: one of them is down, the other has lost its disk. The third node lacks the
// decision and must not lead.
func TestANodeThatLostItsDiskDoesNotVote(t *testing.T) {
	c := newCluster(t, 3, nil)
	leader, at := c.leader()
	behind, wiped := (at+1)%3, (at+2)%3
	c.agree()
	c.stop(behind)
	require.EqualValues(t, 0, c.take(leader, "key", 1).Remaining)
	c.nodes[at].Close()
	c.nodes[at] = nil
	c.stop(wiped)
	c.opts[wiped].DataDir = t.TempDir()
	c.restart(wiped)
	c.restart(behind)
	require.Never(t, func() bool {
		return c.nodes[behind].Topology().Leader != "" || c.nodes[wiped].Topology().Leader != ""
	}, 3*time.Second, 20*time.Millisecond)
	c.restart(at)
	require.ErrorIs(t, <-c.fatal, raftstore.ErrLostState)
	c.nodes[wiped].Close()
	c.nodes[wiped] = nil
	leader, _ = c.leader()
	require.Zero(t, c.take(leader, "key", 1).Allowed)
}

// TestOutdatedWindowsAreNotBegun checks that calendar windows which have already ended are refused. A node whose
// clock is far behind sends them.
func TestOutdatedWindowsAreNotBegun(t *testing.T) {
	c := newCluster(t, 1, nil)
	leader, _ := c.leader()
	now := leader.Now()
	op := engine.Op{Key: []byte("key"), Cost: 1,
		Limit: engine.Limit{Algorithm: engine.FixedWindow, Mode: engine.Day, Max: 1}}
	wall := now.NowNs + now.WallOffsetNs
	op.Calendar = &engine.Calendar{EndNs: wall - 2, NextEndNs: wall - 1}
	out := make([]engine.Decision, 1)
	require.ErrorIs(t, leader.Decide([]engine.Op{op}, out), limiter.ErrTryAgain)
	op.Calendar = &engine.Calendar{EndNs: wall - 2, NextEndNs: wall + int64(time.Hour)}
	require.EqualValues(t, 1, c.decideOn(leader, op)[0].Allowed)
	require.EqualValues(t, 0, c.decideOn(leader, op)[0].Allowed)
}

// TestTransactionsMeetTheMemoryBound checks that a transaction is admitted or refused as a whole at full memory.
func TestTransactionsMeetTheMemoryBound(t *testing.T) {
	c := newCluster(t, 1, func(_ int, o *raftstore.Options) {
		o.Table.MaxMemoryBytes, o.Table.WhenFull = 4<<20, engine.Deny
	})
	leader, _ := c.leader()
	refused := false
	for i := 0; i < 200 && !refused; i++ {
		ops := make([]engine.Op, 500)
		for k := range ops {
			ops[k] = quota(string(rune(i))+"/"+string(rune(k)), 5)
		}
		out := make([]engine.Decision, len(ops))
		require.NoError(t, leader.DecideAtomic(ops, out))
		refused = out[0].Status == engine.OutOfMemory
		require.Equal(t, out[0].Status, out[len(out)-1].Status)
	}
	require.True(t, refused)
	require.Less(t, leader.Stats().MemoryBytes, int64(6<<20))
}
