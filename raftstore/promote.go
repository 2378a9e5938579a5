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

// promote gives a vote to the members that have caught up: a cold node that voted
// at once would count for the majority without helping to make one.
func (n *Node) promote() {
	r := n.reign.Load()
	if r == nil {
		return
	}
	for _, s := range n.servers() {
		if s.Suffrage != raft.Nonvoter {
			continue
		}
		last, ok := n.peers.last(string(s.ID))
		if !ok || time.Since(last.at) > 3*statusEvery || last.Index+caughtUp < n.raft.CommitIndex() {
			continue
		}
		if err := n.changed(n.raft.AddVoter(s.ID, s.Address, 0, adminTimeout)); err != nil {
			n.log.Warn("a node could not be promoted", "node", s.ID, "error", err)
			continue
		}
		n.log.Info("a node has caught up and votes now", "node", s.ID)
	}
}
