package membership

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore/internal/host"
	"github.com/weir-project/weir/raftstore/internal/leadership"
	"github.com/weir-project/weir/raftstore/internal/timers"
)

// Promote gives a vote to members that have caught up. A voter that lacks most of the log would raise the size of a
// majority, and could not acknowledge new entries. The change of membership takes time, and needs a goroutine.
func (m *Membership) Promote() {
	if m.Leadership.Current.Load() == nil || m.promoting.Busy() {
		return
	}
	seen := m.FSM.Configuration()
	ready := slices.DeleteFunc(slices.Clone(m.Raft.Servers()), func(s raft.Server) bool {
		return s.Suffrage != raft.Nonvoter || !m.hasCaughtUp(s)
	})
	ready = ready[:min(len(ready), m.freeVotes())]
	if len(ready) == 0 {
		return
	}
	m.promoting.Go(m.Life.Go, func() {
		for _, s := range ready {
			if m.mayEnter(string(s.ID)) == nil {
				m.GiveVote(s, seen)
			}
		}
	})
}

// freeVotes returns how many more members may vote without an order. In the first group of a cluster whose groups are
// on a part of the nodes, so many nodes vote as a group shall have replicas, and the others follow. Every other member
// was told to have a replica.
func (m *Membership) freeVotes() int {
	if m.First != nil || m.Replicas == 0 {
		return math.MaxInt
	}
	return max(m.Replicas-len(m.Raft.Voters()), 0)
}

// promoteNode gives a vote in the first group to a node that follows it.
func (m *Membership) promoteNode(id string) error {
	seen := m.FSM.Configuration()
	switch s := m.Raft.Server(id); {
	case s == nil:
		return fmt.Errorf("no node %q in this cluster", id)
	case s.Suffrage == raft.Voter:
		return nil
	case !m.hasCaughtUp(*s):
		return fmt.Errorf("%w: node %q has not caught up", limiter.ErrTryAgain, id)
	default:
		return m.Raft.Change(m.Raft.AddVoter(s.ID, s.Address, seen, timers.AdminTimeout))
	}
}

// demoteNode takes the vote in the first group from a node, which then only follows it.
func (m *Membership) demoteNode(id string) error {
	seen, voters := m.FSM.Configuration(), m.Raft.Voters()
	switch {
	case m.First != nil || m.Replicas == 0:
		return errors.New("only the first group of a cluster with --replicas has nodes that follow without a vote")
	case !slices.Contains(voters, id):
		return nil
	case len(voters) <= m.Replicas:
		return fmt.Errorf("the first group has %d replicas, and shall have %d: give another node a vote first",
			len(voters), m.Replicas)
	}
	return m.Raft.Change(m.Raft.DemoteVoter(raft.ServerID(id), seen, timers.AdminTimeout))
}

// hasCaughtUp reports whether a member lacks little of the log.
func (m *Membership) hasCaughtUp(s raft.Server) bool {
	last, ok := m.Peers.Last(string(s.ID))
	return ok && caughtUp(&last, m.Raft.CommitIndex())
}

// caughtUp reports whether the last message of a member shows that it lacks little of a log with this commit index. A
// member without an entry may not know that it was taken in, and then accepts none. As a voter it could never join.
func caughtUp(last *host.Heard, committed uint64) bool {
	return time.Since(last.At) <= 3*timers.StatusEvery && last.Index > 0 && last.Index+leadership.CaughtUp >= committed
}

// GiveVote promotes a member if the configuration is still the one at log index seen. Otherwise a node that was
// removed meanwhile would become a member again.
func (m *Membership) GiveVote(s raft.Server, seen uint64) {
	if err := m.Raft.Change(m.Raft.AddVoter(s.ID, s.Address, seen, timers.AdminTimeout)); err != nil {
		m.Log.Warn("promoting a node to voter failed", "node", s.ID, "error", err)
		return
	}
	m.Log.Info("a node has caught up and is now a voter", "node", s.ID)
}
