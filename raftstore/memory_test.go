package raftstore_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore"
)

// TestANodeWithoutADiskIsANewNode checks that a restarted node without a disk joins under a new id, and that its old
// id is removed. It may have forgotten its votes.
func TestANodeWithoutADiskIsANewNode(t *testing.T) {
	c := newCluster(t, 3, func(_ int, o *raftstore.Options) { o.Durability = raftstore.Memory })
	leader, at := c.leader()
	c.take(leader, "key", 10)
	other := (at + 1) % 3
	before := c.nodes[other].Topology().Self
	require.True(t, strings.HasPrefix(before, c.opts[other].NodeID+"~"))
	c.stop(other)
	c.restart(other)
	require.Eventually(t, func() bool {
		return !slices.ContainsFunc(leader.Topology().Nodes, func(m limiter.Member) bool { return m.ID == before })
	}, patience, 10*time.Millisecond)
	c.sees(leader, 3, 3)
	require.NotEqual(t, before, c.nodes[other].Topology().Self)
	require.EqualValues(t, 8, c.take(c.nodes[other], "key", 10).Remaining)
	c.agree()
}
