package raftstore

import (
	"context"
	"time"

	"github.com/hashicorp/raft"
)

// LastIndex returns the index of the last entry in this node's log, committed or not.
func (n *Node) LastIndex() uint64 { return n.raft.LastIndex() }

// Elect makes this node stand for election at once, without a pre-vote, because the leader at the address old is
// silent. It does nothing if the group has another leader, or if this node does not vote. Elect returns when ctx ends
// at the latest.
func (n *Node) Elect(ctx context.Context, old string) {
	if n.raft.State() != raft.Follower || !n.votes() {
		return
	}
	if leader, _ := n.raft.LeaderWithID(); leader != "" && string(leader) != old {
		return
	}
	if n.transport.Elect(ctx) {
		n.own.Log.Info("the leader is silent; this node stands for election", "leader_addr", old)
	}
}

// LastTransfer returns when a leader last transferred its leadership to this node; zero: never.
func (n *Node) LastTransfer() time.Time { return n.transport.LastTransfer() }

// votes reports whether this node is a voter.
func (n *Node) votes() bool {
	s := n.raft.Server(n.own.Options.NodeID)
	return s != nil && s.Suffrage == raft.Voter
}
