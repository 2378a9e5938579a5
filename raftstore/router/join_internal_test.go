package router

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore"
)

// TestANodeWithoutTheFirstGroupJoinsNoOther checks a node on which the first group had ended before the start. The node
// was removed, so it must not join the groups in which it was not yet.
func TestANodeWithoutTheFirstGroupJoinsNoOther(t *testing.T) {
	n := &Node{options: raftstore.Options{Groups: 2}, nodes: make([]atomic.Pointer[raftstore.Node], 2)}
	o := n.ofGroup(1)
	require.NotNil(t, o.First)
	require.False(t, o.First.Joined())
	require.Nil(t, o.First.Members())
	require.ErrorIs(t, o.First.Belongs("a"), limiter.ErrClusterDown)
	o = n.ofGroup(0)
	require.Nil(t, o.First, "the first group asks by itself")
}

// TestPartsOfTheSnapshotSize checks that the groups share the size of log that makes a snapshot due. The least size of a
// group is not above the size that the user gave.
func TestPartsOfTheSnapshotSize(t *testing.T) {
	for _, c := range []struct {
		groups     int
		all, group int64
	}{
		{1, 1 << 20, 1 << 20}, {4, 1 << 20, 1 << 20}, {1, 64 << 20, 64 << 20}, {4, 64 << 20, 16 << 20},
		{64, 64 << 20, 4 << 20},
	} {
		n := &Node{
			options: raftstore.Options{Groups: c.groups, SnapshotBytes: c.all},
			nodes:   make([]atomic.Pointer[raftstore.Node], c.groups),
		}
		require.Equal(t, c.group, n.ofGroup(0).SnapshotBytes, "%d bytes for %d groups", c.all, c.groups)
	}
}
