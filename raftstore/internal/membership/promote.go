package membership

import (
	"time"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/raftstore/internal/leadership"
	"github.com/weir-project/weir/raftstore/internal/timers"
)

// PromoteAll looks for nodes to promote until the node closes. A change of
// membership takes its time, so it has a goroutine of its own.
func (m *Membership) PromoteAll() {
	tick := time.NewTicker(timers.HousekeepEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			m.promote()
		case <-m.Stop:
			return
		}
	}
}

// promote gives a vote to the members that have caught up: a cold node that voted
// at once would count for the majority without helping to make one.
func (m *Membership) promote() {
	if m.Leadership.Current.Load() == nil {
		return
	}
	seen := m.FSM.Configuration()
	for _, s := range m.Raft.Servers() {
		if s.Suffrage == raft.Nonvoter && m.hasCaughtUp(s) {
			m.GiveVote(s, seen)
		}
	}
}

// hasCaughtUp reports whether a member lacks little of the log.
func (m *Membership) hasCaughtUp(s raft.Server) bool {
	last, ok := m.Peers.Last(string(s.ID))
	return ok && time.Since(last.At) <= 3*timers.StatusEvery && last.Index+leadership.CaughtUp >= m.Raft.CommitIndex()
}

// GiveVote promotes a member that was one in the configuration seen: it may have
// been removed since, and must not come back by this.
func (m *Membership) GiveVote(s raft.Server, seen uint64) {
	if err := m.Raft.Change(m.Raft.AddVoter(s.ID, s.Address, seen, timers.AdminTimeout)); err != nil {
		m.Log.Warn("a node could not be promoted", "node", s.ID, "error", err)
		return
	}
	m.Log.Info("a node has caught up and votes now", "node", s.ID)
}
