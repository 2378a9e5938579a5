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
