package raftstore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore"
	"github.com/weir-project/weir/raftstore/wire"
)

// TestDatabasesNeedEveryMember checks that no key of another database than 0 is written while a member does not know
// databases, and that FLUSHDB of database 0 works all the same. It then checks them on each node of a new cluster.
func TestDatabasesNeedEveryMember(t *testing.T) {
	require.EqualValues(t, limiter.DatabasesFormat, wire.FormatOf(&engine.Op{Code: engine.OpFlush}))
	c := newCluster(t, 3, func(i int, o *raftstore.Options) {
		if i == 0 {
			o.Format = wire.Growing - 1
		}
	})
	leader, _ := c.leader()
	inOne := func(op engine.Op) engine.Op {
		op.Key = engine.AppendStored(nil, 1, op.Key)
		return op
	}
	for _, n := range c.nodes {
		require.ErrorIs(t, c.refusal(n.Decide, quota("key", 10), inOne(quota("key", 10))), limiter.ErrOldMember)
		require.ErrorIs(t, n.ClearDatabase(1), limiter.ErrOldMember)
		require.Less(t, n.Topology().Format, byte(limiter.DatabasesFormat))
	}
	c.decideOn(leader, quota("key", 10))
	c.clear(c.nodes[0], 0)
	require.EqualValues(t, 9, c.decideOn(leader, quota("key", 10))[0].Remaining)
	c.agree()

	c = newCluster(t, 3, nil)
	c.leader()
	for _, n := range c.nodes {
		require.EqualValues(t, 9, c.decideOn(n, inOne(quota("key", 10)))[0].Remaining)
		require.EqualValues(t, 19, c.decideOn(n, quota("key", 20))[0].Remaining)
		require.EqualValues(t, 8, c.decideOn(n, inOne(quota("key", 10)))[0].Remaining)
		c.clear(n, 0)
		require.Eventually(t, func() bool { return n.ReadIndex() == nil }, patience, time.Millisecond)
		require.EqualValues(t, 0, n.Len(0))
		require.EqualValues(t, 1, n.Len(1))
		c.clear(n, 1)
	}
	c.agree()
}

// clear clears a database through a node, and repeats that until it succeeds.
func (c *cluster) clear(n *raftstore.Node, db int) {
	c.t.Helper()
	require.Eventually(c.t, func() bool { return n.ClearDatabase(db) == nil }, patience, time.Millisecond)
}
