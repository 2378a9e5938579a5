package raftstore

import (
	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/internal/faults"
)

// transport is the Raft library's network transport without its fast path for
// heartbeats. With it, heartbeats are handled beside the main loop, and a leader
// that was paused can write a waiting proposal under its successor's term and
// later take it for the successor's own: a divergence for good (hashicorp/raft
// issue 695, in every release up to 1.8.0). Ignoring the handler sends heartbeats
// through the main loop, as the interface allows. Everything else of the transport
// is promoted, so that the library still finds its optional interfaces.
type transport struct {
	*raft.NetworkTransport
	gate  *gate
	reach func(faults.Point) // Node.reach
}

var (
	_ raft.WithPreVote = transport{}
	_ raft.WithClose   = transport{}
)

// AppendEntries sends entries, or a heartbeat, unless the disk of this leader is stuck.
func (t transport) AppendEntries(id raft.ServerID, target raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	t.gate.wait()
	return t.NetworkTransport.AppendEntries(id, target, args, resp)
}

// SetHeartbeatHandler ignores the handler.
func (transport) SetHeartbeatHandler(func(raft.RPC)) {}
