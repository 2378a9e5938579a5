package raftstore

import (
	"context"

	"github.com/hashicorp/raft"
)

// What the tests outside the package need of its inside.

// HoldQueue lets nothing more under way, until the next handover has ended.
func (n *Node) HoldQueue() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	n.queue.pause(ctx)
}

// Waiting is how many batches have not been proposed.
func (n *Node) Waiting() int {
	n.queue.mu.Lock()
	defer n.queue.mu.Unlock()
	return len(n.queue.batches)
}

// Format is what the node writes entries in.
func (n *Node) Format() int32 { return n.format.Load() }

// AgreeOnFormat looks at once what to write entries in.
func (n *Node) AgreeOnFormat() int32 { n.agreeOnFormat(); return n.Format() }

// Heard reports whether a member has said how it is.
func (n *Node) Heard(id string) bool { _, ok := n.peers.last(id); return ok }

// Configuration is the entry of the newest committed configuration.
func (n *Node) Configuration() uint64 { return n.configuration() }

// GiveVote promotes a member that was seen in a configuration.
func (n *Node) GiveVote(id, addr string, seen uint64) {
	n.giveVote(raft.Server{ID: raft.ServerID(id), Address: raft.ServerAddress(addr)}, seen)
}

// Ascend begins the reign of a leader once more.
func (n *Node) Ascend() { n.ascend() }

// TransferBlindly has the Raft library hand leadership over, and does not wait.
func (n *Node) TransferBlindly(id, addr string) {
	n.raft.LeadershipTransferToServer(raft.ServerID(id), raft.ServerAddress(addr))
}

// Forwarded is how many batches of other nodes have no answer yet.
func (n *Node) Forwarded() int64 { return n.answering.Load() }

// QuietFor is how long nobody must have sent anything before a leader closes.
const QuietFor = quietFor

// LeaderlessPause is how long a leader that cannot serve waits before it tries again.
const LeaderlessPause = leaderlessPause

// Dispute lets a node doubt its state, or not any more.
func (n *Node) Dispute(doubt bool) { n.divergence.underWay.Store(doubt) }

// Confirm commits an entry without operations, on a leader.
func (n *Node) Confirm() error {
	r := n.reign.Load()
	if r == nil {
		return ErrNotLeader
	}
	b, _, err := n.queue.add(nil, false, false)
	if err != nil {
		return err
	}
	if <-b.done; b.err == nil && n.raft.CurrentTerm() != r.term {
		return ErrTryAgain // another leader answered
	}
	return b.err
}

// HoldApply keeps the node from applying entries until release is called.
func (n *Node) HoldApply() (release func()) {
	n.machine.whole.Lock()
	return n.machine.whole.Unlock
}
