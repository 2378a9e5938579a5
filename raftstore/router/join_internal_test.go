package router

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore"
)

// TestANodeWithoutTheFirstGroupJoinsNoOther checks a node on which the first group had ended before the start. The node
// was removed, so it must not join the groups in which it was not yet.
func TestANodeWithoutTheFirstGroupJoinsNoOther(t *testing.T) {
	n := &Node{options: raftstore.Options{Groups: 2}, nodes: make([]*raftstore.Node, 2)}
	o := n.ofGroup(1)
	require.NotNil(t, o.First)
	require.False(t, o.First.Joined())
	require.Nil(t, o.First.Members())
	require.ErrorIs(t, o.First.Belongs("a"), limiter.ErrClusterDown)
	o = n.ofGroup(0)
	require.Nil(t, o.First, "the first group asks by itself")
}
