package raftstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore"
	"github.com/weir-project/weir/raftstore/wire"
)

// TestBlockEverywhereOnEveryNode checks that every node denies a key that one node blocked everywhere. The block
// survives a snapshot and a restart, and any node can lift it.
func TestBlockEverywhereOnEveryNode(t *testing.T) {
	c := newCluster(t, 3, nil)
	leader, at := c.leader()
	for _, other := range c.nodes {
		if other != leader {
			require.Eventually(t, func() bool { return other.Heard(c.opts[at].NodeID) }, patience, 10*time.Millisecond)
		}
	}
	require.Eventually(t, func() bool { return leader.AgreeOnFormat() >= 3 }, patience, 10*time.Millisecond)
	follower := c.nodes[(at+1)%3]
	require.Eventually(t, func() bool { return follower.AgreeOnFormat() >= 3 }, patience, 10*time.Millisecond)
	require.EqualValues(t, 1, c.decideOn(follower, blockEverywhere("ip:192.0.2.66"))[0].Allowed)
	denied := func(when string) {
		for i, n := range c.nodes {
			out := c.decideOn(n, quota("login|ip:192.0.2.66", 10), quota("ip:192.0.2.66", 10),
				quota("login|ip:192.0.2.67", 1000))
			require.Equal(t, []int64{0, 0, 1}, []int64{out[0].Allowed, out[1].Allowed, out[2].Allowed},
				"%s: node %d", when, i)
		}
	}
	denied("at once")
	last := (at + 2) % 3
	require.NoError(t, c.nodes[last].Snapshot())
	c.stop(last)
	c.restart(last)
	c.agree()
	denied("after a restart from an image")
	require.EqualValues(t, 1,
		c.decideOn(c.nodes[last], engine.Op{Code: engine.OpUnblock, Key: []byte("ip:192.0.2.66"), Cost: 1})[0].Allowed)
	for _, n := range c.nodes {
		require.EqualValues(t, 1, c.decideOn(n, quota("login|ip:192.0.2.66", 10))[0].Allowed)
	}
	c.agree()
}

// blockEverywhere returns a block that counts everywhere.
func blockEverywhere(key string) engine.Op {
	return engine.Op{Code: engine.OpBlockEverywhere, Key: []byte(key), Cost: 1, TTLNs: engine.Never}
}

// TestANetworkNeedsTheNewestFormat checks that a block of a network is refused while a member does not know its effect,
// and then denies its addresses on every node.
func TestANetworkNeedsTheNewestFormat(t *testing.T) {
	c := newCluster(t, 2, func(i int, o *raftstore.Options) {
		if i == 1 {
			o.Format = wire.Oldest
		}
	})
	leader := c.moveTo(0)
	require.Eventually(t, func() bool { return leader.AgreeOnFormat() == wire.Oldest }, patience, 10*time.Millisecond)
	block := blockEverywhere("ip:10.0.0.0/8")
	block.High = true
	require.ErrorIs(t, c.refusal(leader.Decide, block), limiter.ErrOldMember)
	c.stop(1)
	c.opts[1].Format = wire.Version
	c.restart(1)
	leader = c.moveTo(0)
	require.Eventually(t, func() bool { return leader.AgreeOnFormat() == wire.Version }, patience, 10*time.Millisecond)
	require.EqualValues(t, 1, c.decideOn(leader, quota("login|ip:10.1.2.3", 10))[0].Allowed)
	require.EqualValues(t, 1, c.decideOn(leader, block)[0].Allowed)
	for _, n := range c.nodes {
		require.Zero(t, c.decideOn(n, quota("login|ip:10.1.2.3", 10))[0].Allowed)
	}
	c.agree()
}

// TestManyBlocksNeedTheNewestFormat checks that at most 1,000 blocks everywhere may be in force while a member runs an
// older version, that a node knows the bound of the next block, and that an older version does not start again after
// more of them and says why.
func TestManyBlocksNeedTheNewestFormat(t *testing.T) {
	const older = 11
	c := newCluster(t, 2, func(i int, o *raftstore.Options) {
		if i == 1 {
			o.Format = older
		}
	})
	leader := c.moveTo(0)
	require.Eventually(t, func() bool { return leader.AgreeOnFormat() == older }, patience, 10*time.Millisecond)
	var ops []engine.Op
	for i := range 1001 {
		ops = append(ops, blockEverywhere(fmt.Sprint("ip:", i)))
	}
	last := c.decideOn(leader, ops...)[1000]
	require.Equal(t, engine.BlocksFull, last.Status)
	require.EqualValues(t, 1000, last.MostBlocks())
	require.EqualValues(t, 1000, leader.BlocksEverywhere().Max)
	reopen := func(format byte) {
		c.stop(1)
		c.opts[1].Format = format
		c.restart(1)
	}
	reopen(wire.Version)
	leader = c.moveTo(0)
	require.Eventually(t, func() bool { return leader.AgreeOnFormat() == wire.Version }, patience, 10*time.Millisecond)
	require.EqualValues(t, engine.MaxBlocksEverywhere, leader.BlocksEverywhere().Max)
	require.EqualValues(t, 1, c.decideOn(leader, ops[1000])[0].Allowed)
	c.agree()
	reopen(older)
	err := <-c.fatal
	require.ErrorIs(t, err, raftstore.ErrNewer)
	require.ErrorContains(t, err, "entry format 12, this one reads 11")
}
