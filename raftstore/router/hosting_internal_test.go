package router

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore"
)

// TestNobodyWaitsForAnOpening checks that a request for a replica fails at once while another replica is opened. That
// lasts as long as the disk hangs.
func TestNobodyWaitsForAnOpening(t *testing.T) {
	n := &Node{
		options: raftstore.Options{Replicas: 3, Groups: 2},
		nodes:   make([]atomic.Pointer[raftstore.Node], 2),
	}
	n.nodes[0].Store(new(raftstore.Node))
	require.True(t, n.opening.TryLock())
	_, err := n.hostReplica(1)
	require.ErrorIs(t, err, limiter.ErrTryAgain)
	n.opening.Unlock()
	require.True(t, n.opening.TryLock())
}
