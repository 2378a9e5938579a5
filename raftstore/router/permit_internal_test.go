package router

import (
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/raftstore"
)

// TestGroupsShareOnePermit checks that the groups of a process take their snapshots one after the other.
func TestGroupsShareOnePermit(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	n, err := Open(raftstore.Options{
		NodeID: "a", RaftAddr: l.Addr().String(), Listener: l, Groups: 4, Durability: raftstore.Memory,
		Logger: slog.New(slog.DiscardHandler), OnFatal: func(err error) { t.Error(err) },
	})
	require.NoError(t, err)
	stop := make(chan struct{})
	require.True(t, n.host.Snapshots.AcquireForOperator(stop))
	taken := make(chan error, len(n.nodes))
	for i := range n.nodes {
		go func() { taken <- n.nodes[i].Load().Snapshot() }()
	}
	require.Eventually(t, func() bool { return n.host.Snapshots.Waiting() == len(n.nodes) },
		time.Minute, time.Millisecond)
	n.host.Snapshots.Release()
	for range n.nodes {
		require.NoError(t, <-taken)
	}
	require.NoError(t, n.Close())
}
