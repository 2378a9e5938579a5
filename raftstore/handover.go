package raftstore

import (
	"context"
	"time"

	"github.com/hashicorp/raft"
)

// handOver makes another member the leader. What is under way is finished first, and
// what comes meanwhile waits, so that no caller is left in doubt.
func (n *Node) handOver(to raft.Server) error {
	r := n.reign.Load()
	if r == nil {
		return ErrNotLeader
	}
	ctx, cancel := context.WithTimeout(n.ctx, n.options.Heartbeat)
	defer cancel()
	n.queue.pause(ctx)
	defer n.queue.resume()
	err := n.changed(n.raft.LeadershipTransferToServer(to.ID, to.Address))
	if err == nil {
		n.reign.CompareAndSwap(r, nil)
	}
	return err
}

// successor is the member that had best lead next: one that votes, is up and has
// applied most. The Raft library would also take one that does not answer, and can
// then refuse every entry until it is restarted (hashicorp/raft issue 696).
// A member that has said that it stops comes last, rather than never: in a rolling restart it
// is back before this node asks it again.
func (n *Node) successor() (best raft.Server, ok bool) {
	var most uint64
	var stops bool
	for _, s := range n.servers() {
		last, heard := n.peers.last(string(s.ID))
		if s.Suffrage != raft.Voter || !heard || time.Since(last.at) > 2*statusEvery {
			continue
		}
		stopping := n.peers.isStopping(string(s.ID))
		better := stops && !stopping || stops == stopping && last.Index > most
		if !ok || better {
			best, most, stops, ok = s, last.Index, stopping, true
		}
	}
	return best, ok
}

// abdicate hands leadership over before the node closes, so that nobody waits for
// an election.
func (n *Node) abdicate() {
	to, ok := n.successor()
	if n.reign.Load() == nil || !ok {
		return
	}
	done := make(chan error, 1)
	go func() { done <- n.handOver(to) }()
	select {
	case err := <-done:
		if err != nil && !n.peers.isStopping(string(to.ID)) {
			n.log.Warn("leadership could not be handed over", "to", to.ID, "error", err)
		}
	case <-time.After(n.electionTimeout()):
	}
}

// linger waits until everything that other nodes sent here is answered, and they have
// sent nothing more for so long that they must have noticed who leads now: what is
// refused here in a handover is sent again at once, perhaps here.
func (n *Node) linger() {
	ctx, cancel := context.WithTimeout(n.ctx, lingerMost)
	defer cancel()
	quiet := func() bool {
		return n.answering.Load() == 0 && n.uptime()-time.Duration(n.lastForwarded.Load()) >= quietFor
	}
	for ctx.Err() == nil && !quiet() {
		time.Sleep(leaderlessPause)
	}
	n.queue.empty(ctx)
}
