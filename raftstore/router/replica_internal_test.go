package router

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/limiter"
)

// TestANodeIsCalledByTheIDItWasGiven checks that an operator may name a node by the id that it was started with.
func TestANodeIsCalledByTheIDItWasGiven(t *testing.T) {
	top := &limiter.Topology{Nodes: []limiter.Member{{ID: "n1"}, {ID: "n3~1qvzviu"}}}
	for given, want := range map[string]string{
		"n1": "n1", "n3": "n3~1qvzviu", "n3~1qvzviu": "n3~1qvzviu", "n4": "n4", "": "",
	} {
		require.Equal(t, want, called(top, given))
	}
}

// TestCatchingUp checks what an operator is told of a new replica.
func TestCatchingUp(t *testing.T) {
	up, down := &limiter.Member{ID: "n7", Up: true}, &limiter.Member{ID: "n7"}
	replica := &limiter.Member{ID: "n7~1", Up: true, LagEntries: 3}
	require.Equal(t, "the replica on n7 catches up; entries left: 3", catchingUp(up, replica))
	require.Equal(t, "the replica on n7 catches up", catchingUp(up, &limiter.Member{}))
	require.Equal(t, "n7 is down: its replica catches up when it is back", catchingUp(down, replica))
}
