package raftstore

import (
	"time"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/raftstore/internal/timers"
)

const (
	// caughtUp is how many entries a node may lack to be promoted: it has them before
	// the change is committed.
	caughtUp = 64
)

// promotions looks for nodes to promote until the node closes. A change of
// membership takes its time, so it has a goroutine of its own.
func (m *membership) promotions() {
	tick := time.NewTicker(timers.HousekeepEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			m.promote()
		case <-m.stop:
			return
		}
	}
}

// promote gives a vote to the members that have caught up: a cold node that voted
// at once would count for the majority without helping to make one.
func (m *membership) promote() {
	if m.leadership.current.Load() == nil {
		return
	}
	seen := m.machine.Configuration()
	for _, s := range m.raft.Servers() {
		if s.Suffrage == raft.Nonvoter && m.hasCaughtUp(s) {
			m.giveVote(s, seen)
		}
	}
}

// hasCaughtUp reports whether a member lacks little of the log.
func (m *membership) hasCaughtUp(s raft.Server) bool {
	last, ok := m.peers.last(string(s.ID))
	return ok && time.Since(last.at) <= 3*timers.StatusEvery && last.Index+caughtUp >= m.raft.CommitIndex()
}

// giveVote promotes a member that was one in the configuration seen: it may have
// been removed since, and must not come back by this.
func (m *membership) giveVote(s raft.Server, seen uint64) {
	if err := m.raft.Change(m.raft.AddVoter(s.ID, s.Address, seen, timers.AdminTimeout)); err != nil {
		m.log.Warn("a node could not be promoted", "node", s.ID, "error", err)
		return
	}
	m.log.Info("a node has caught up and votes now", "node", s.ID)
}
