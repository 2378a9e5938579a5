package router

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/limiter"
)

// members makes every group know the same nodes, and "a" lead all of them.
func members(groups []*fakeGroup, ids ...string) {
	for _, g := range groups {
		g.topology = limiter.Topology{Self: "a", Leader: "a"}
		for _, id := range ids {
			g.topology.Nodes = append(g.topology.Nodes, limiter.Member{ID: id, RaftAddr: id + ":1", Voter: true})
		}
	}
}

// TestAChangeOfSomeGroupsSaysOfHowMany checks that a group that fails hinders no other group, and that the error counts
// the groups with the change. It must not look like an error after which nothing was changed.
func TestAChangeOfSomeGroupsSaysOfHowMany(t *testing.T) {
	r, groups := newTest(t, 4)
	members(groups, "a", "b")
	groups[1].fail(limiter.ErrClusterDown)
	for name, change := range map[string]func() error{
		"add":      func() error { return r.AddNode("c", "c:1") },
		"remove":   func() error { return r.RemoveNode("b") },
		"transfer": func() error { return r.TransferLeadership("b") },
	} {
		err := change()
		for _, known := range []error{limiter.ErrClusterDown, limiter.ErrTryAgain, limiter.ErrNotLeader} {
			require.NotErrorIs(t, err, known, name)
		}
		most := map[bool]string{true: "2 of 4 groups", false: "3 of 4 groups"}[name == "remove"] // the first is last
		require.ErrorContains(t, err, most, name)
		require.ErrorContains(t, err, "group 1: "+limiter.ErrClusterDown.Error(), name)
	}
	require.True(t, groups[3].knows("c") && !groups[3].knows("b"))
	require.True(t, groups[0].knows("b"), "the first group keeps a node that another group has")

	groups[1].fail(nil)
	require.NoError(t, r.AddNode("c", "c:1"))
	require.NoError(t, r.RemoveNode("b"))
	require.NoError(t, r.TransferLeadership("c"))
	for i, g := range groups {
		require.True(t, g.knows("c") && !g.knows("b"), "group %d", i)
		require.Contains(t, g.moved, "c", "group %d", i)
	}
}

// TestAChangeOfNoGroupKeepsItsError checks that a change ends with the first error if no group has it, after a few
// attempts, and that a node comes into no group without the first one.
func TestAChangeOfNoGroupKeepsItsError(t *testing.T) {
	r, groups := newTest(t, 16)
	members(groups, "a", "b")
	groups[0].fail(limiter.ErrTryAgain)
	require.ErrorIs(t, r.AddNode("c", "c:1"), limiter.ErrTryAgain)
	for _, g := range groups {
		require.False(t, g.knows("c"))
	}
	tries := 0
	err := r.inTurn(func(int) error { tries++; return errors.New("no") })
	require.EqualError(t, err, "no")
	require.Equal(t, maxFailed, tries)
}
