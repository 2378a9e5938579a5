package raftstore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/raftstore"
	"github.com/weir-project/weir/raftstore/wire"
)

// withID gives an operation an ID, which is bound to it.
func withID(id string, op engine.Op) engine.Op {
	op.ID = []byte(id)
	op.Asks = op.Fingerprint()
	return op
}

// allWrite waits until every node may write a format.
func (c *cluster) allWrite(format byte) {
	for _, n := range c.nodes {
		require.Eventually(c.t, func() bool { return n.AgreeOnFormat() == int32(format) }, patience,
			10*time.Millisecond)
	}
}

// TestAnIDIsBoundOnEveryNode checks that a request with a used ID and other terms is refused through every node, by the
// next leader, and after a snapshot and a restart.
func TestAnIDIsBoundOnEveryNode(t *testing.T) {
	c := newCluster(t, 3, func(_ int, o *raftstore.Options) { o.TestClock = true })
	leader, at := c.leader()
	follower, next := c.nodes[(at+1)%3], (at+2)%3
	c.allWrite(wire.Version)
	c.decideOn(leader, setPolicy("burst", 10), setPolicy("daily", 2))
	request, other := withID("r1", check(1, "burst", "u")), withID("r1", check(1, "daily", "u"))
	refused := func(n *raftstore.Node, op engine.Op, differs engine.Difference) {
		t.Helper()
		d := c.decideOn(n, op)[0]
		require.Equal(t, engine.OtherTerms, d.Status)
		code, _, got := d.FirstUse()
		require.Equal(t, engine.OpCheck, code)
		require.Equal(t, differs, got)
	}
	first := c.decideOn(follower, request)[0]
	require.EqualValues(t, 9, first.Remaining)
	for _, n := range c.nodes {
		refused(n, other, engine.OtherPairs)
		refused(n, withID("r1", check(2, "burst", "u")), engine.OtherCost)
		require.Equal(t, first, c.decideOn(n, request)[0])
	}
	require.NoError(t, leader.Snapshot())
	c.agree()
	leader = c.moveTo(next)
	refused(leader, other, engine.OtherPairs)
	c.stop(at)
	c.restart(at)
	refused(c.nodes[at], other, engine.OtherPairs)
	require.EqualValues(t, 2, c.decideOn(leader, check(0, "daily", "u"))[0].Remaining)

	leader, _ = c.leader()
	c.decideOn(leader, withID("a", refilled("b")))
	for _, n := range c.nodes {
		require.Zero(t, c.decideOn(n, withID("b", refilled("b")))[0].Allowed)
	}
	require.True(t, leader.Advance(time.Second))
	for _, n := range c.nodes {
		require.EqualValues(t, 1, c.decideOn(n, withID("b", refilled("b")))[0].Allowed,
			"a denial is not remembered, and an admission is")
	}
	c.agree()
}

// refilled takes a unit from a bucket of one, which refills in a second.
func refilled(key string) engine.Op {
	return engine.Op{Key: []byte(key), Cost: 1,
		Limit: engine.Limit{Algorithm: engine.TokenBucket, Rate: engine.Rate{Units: 1, PerNs: 1e9}, Max: 1}}
}

// TestIDsWhileAnOlderMemberIsThere checks that IDs work as the older member knows them, with and without denials, until
// it is upgraded. An answer that was remembered before then is given to every request with its ID.
func TestIDsWhileAnOlderMemberIsThere(t *testing.T) {
	const older = wire.Oldest
	c := newCluster(t, 3, func(i int, o *raftstore.Options) {
		if o.TestClock = true; i == 0 {
			o.Format = older
		}
	})
	c.leader()
	leader := c.moveTo(1)
	c.allWrite(older)
	first := c.decideOn(leader, withID("x", quota("k", 10)))[0]
	more := quota("k", 10)
	more.Cost = 5
	c.decideOn(leader, withID("a", refilled("b")))
	for _, n := range c.nodes {
		require.Equal(t, first, c.decideOn(n, withID("x", more))[0])
		require.Zero(t, c.decideOn(n, withID("b", refilled("b")))[0].Allowed)
	}
	require.True(t, leader.Advance(time.Second))
	require.Zero(t, c.decideOn(leader, withID("b", refilled("b")))[0].Allowed, "older versions remember denials")

	c.stop(0)
	c.opts[0].Format = wire.Version
	c.restart(0)
	c.allWrite(wire.Version)
	for _, n := range c.nodes {
		require.Equal(t, first, c.decideOn(n, withID("x", more))[0], "remembered without its request")
		c.decideOn(n, withID("y", quota("k", 10)))
		require.Equal(t, engine.OtherTerms, c.decideOn(n, withID("y", more))[0].Status)
	}
	c.agree()
}
