package transport

import (
	"context"
	"time"

	"github.com/hashicorp/raft"
)

// Elect makes this node stand for election, as a leader that transfers its leadership does with TimeoutNow. The message
// passes through the main loop of the library. Elect reports false if the library did not take it before ctx ended.
func (s *Shared) Elect(ctx context.Context) bool {
	m := &raft.TimeoutNowRequest{RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax}}
	select {
	case s.rpcs <- raft.RPC{Command: m, RespChan: make(chan raft.RPCResponse, 1)}:
		return true
	case <-ctx.Done():
	case <-s.done:
	}
	return false
}

// note records a transfer of leadership to this node.
func (s *Shared) note(command any) {
	if _, ok := command.(*raft.TimeoutNowRequest); ok {
		now := time.Now()
		s.transferred.Store(&now)
	}
}

// LastTransfer returns when another node last transferred leadership to this node.
func (s *Shared) LastTransfer() time.Time {
	if at := s.transferred.Load(); at != nil {
		return *at
	}
	return time.Time{}
}
