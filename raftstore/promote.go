package raftstore

import (
	"time"

	"github.com/hashicorp/raft"
)

const (
	// caughtUp is how many entries a node may lack to be promoted: it has them before
	// the change is committed.
	caughtUp = 64
)

// promotions looks for nodes to promote until the node closes. A change of
// membership takes its time, so it has a goroutine of its own.
func (n *Node) promotions() {
	tick := time.NewTicker(housekeepEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			n.promote()
		case <-n.stop:
			return
		}
	}
}

// configuration is the entry of the newest committed configuration, 0 when none is
// known: a change that refers to it is refused when another came first. To be asked
// before the servers that the change is about are looked at.
func (n *Node) configuration() uint64 {
	if c := n.machine.committed.Load(); c != nil {
		return c.index
	}
	return 0
}

// promote gives a vote to the members that have caught up: a cold node that voted
// at once would count for the majority without helping to make one.
func (n *Node) promote() {
	if n.reign.Load() == nil {
		return
	}
	seen := n.configuration()
	for _, s := range n.servers() {
		if s.Suffrage == raft.Nonvoter && n.hasCaughtUp(s) {
			n.giveVote(s, seen)
		}
	}
}

// hasCaughtUp reports whether a member lacks little of the log.
func (n *Node) hasCaughtUp(s raft.Server) bool {
	last, ok := n.peers.last(string(s.ID))
	return ok && time.Since(last.at) <= 3*statusEvery && last.Index+caughtUp >= n.raft.CommitIndex()
}

// giveVote promotes a member that was one in the configuration seen: it may have
// been removed since, and must not come back by this.
func (n *Node) giveVote(s raft.Server, seen uint64) {
	if err := n.changed(n.raft.AddVoter(s.ID, s.Address, seen, adminTimeout)); err != nil {
		n.log.Warn("a node could not be promoted", "node", s.ID, "error", err)
		return
	}
	n.log.Info("a node has caught up and votes now", "node", s.ID)
}
