package transport

import (
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// TestStreamsAreOpenedWhenNeeded checks that short messages open no transport for streams on either side, and that a
// first long message opens one on both. Close closes it, and a closed transport opens none.
func TestStreamsAreOpenedWhenNeeded(t *testing.T) {
	a, b := openSharing(t, "a"), openSharing(t, "b")
	opened := func(s *sharing) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.opened != nil
	}
	send := func(entries ...*raft.Log) error {
		b.next(&raft.AppendEntriesResponse{Success: true}, nil)
		return a.AppendEntries("b", b.addr, &raft.AppendEntriesRequest{Entries: entries}, &raft.AppendEntriesResponse{})
	}
	require.NoError(t, send())
	require.False(t, opened(a) || opened(b))
	_, err := a.AppendEntriesPipeline("b", b.addr)
	require.ErrorIs(t, err, raft.ErrPipelineReplicationNotSupported)
	require.Equal(t, a.addr, a.LocalAddr())
	require.Equal(t, b.addr, a.DecodePeer(a.EncodePeer("b", b.addr)))

	long := &raft.Log{Data: make([]byte, maxSharedEntries+1)}
	for range 2 {
		require.NoError(t, send(long))
		require.True(t, opened(a) && opened(b))
	}
	require.NoError(t, a.Close())
	require.NoError(t, a.Close())
	require.True(t, a.opened.IsShutdown())
	require.ErrorIs(t, onStream(a.Shared, (*raft.NetworkTransport).TimeoutNow, "b", b.addr, &raft.TimeoutNowRequest{},
		&raft.TimeoutNowResponse{}), raft.ErrTransportShutdown)
	require.EqualValues(t, 1, a.opens.Load())
	require.EqualValues(t, 1, b.opens.Load())
	require.NoError(t, openSharing(t, "c").Close(), "a transport without streams")
}

// TestATransferIsNoted checks that a node notes when another node transfers leadership to it, on the shared connection
// and on a stream.
func TestATransferIsNoted(t *testing.T) {
	now := raft.TimeoutNowRequest{RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte("a")}}
	for name, ask := range map[string]func(a, b *sharing) error{
		"shared": func(a, b *sharing) error { return a.TimeoutNow("b", b.addr, &now, &raft.TimeoutNowResponse{}) },
		"stream": func(a, b *sharing) error {
			var resp raft.TimeoutNowResponse
			return onStream(a.Shared, (*raft.NetworkTransport).TimeoutNow, "b", b.addr, &now, &resp)
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := openSharing(t, "a"), openSharing(t, "b")
			require.Zero(t, b.LastTransfer())
			before, got := time.Now(), b.next(&raft.TimeoutNowResponse{}, nil)
			require.NoError(t, ask(a, b))
			require.Equal(t, &now, (<-got).Command)
			require.WithinRange(t, b.LastTransfer(), before, time.Now())
			require.Zero(t, a.LastTransfer())
		})
	}
}
