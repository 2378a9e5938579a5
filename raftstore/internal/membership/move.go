package membership

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/internal/guards"
	"github.com/weir-project/weir/raftstore/internal/consensus"
	"github.com/weir-project/weir/raftstore/internal/fsm"
	"github.com/weir-project/weir/raftstore/internal/timers"
)

// Believed is where the cluster believes this node to be: what it has committed, or else
// the newest that this node has heard. "" when it is no member.
func (m *Membership) Believed() string {
	return whereIs(m.Options.NodeID, m.FSM.Committed.Load(), m.Raft.Servers())
}

func whereIs(id string, committed *fsm.Configuration, newest []raft.Server) string {
	s := consensus.ServerOf(newest, id)
	if committed != nil {
		s = cmp.Or(consensus.ServerOf(committed.Servers, id), s)
	}
	if s == nil {
		return ""
	}
	return string(s.Address)
}

// move has the leader write down where this node is since it was started at another
// address. Until then nobody reaches it; it reaches the others.
func (m *Membership) move() error {
	if m.Leadership.Current.Load() != nil {
		return m.relocate(Joining{NodeID: m.Options.NodeID, RaftAddr: m.Options.RaftAddr}, m.FSM.Configuration())
	}
	addrs := m.Options.Join
	for _, s := range m.Raft.Servers() {
		if string(s.ID) != m.Options.NodeID {
			addrs = append(addrs[:len(addrs):len(addrs)], string(s.Address))
		}
	}
	found, silent := m.lookAround(addrs)
	for _, s := range found {
		if s.LeaderAddr != "" {
			return m.askIn(s.LeaderAddr)
		}
	}
	return errors.New("nobody knows a leader" + strings.Join(silent, ""))
}

// relocate writes down where a member is, in the configuration after the one seen.
func (m *Membership) relocate(j Joining, seen uint64) error {
	for _, s := range m.Raft.Servers() {
		if string(s.Address) == j.RaftAddr && string(s.ID) != j.NodeID {
			return addressTaken(s)
		}
	}
	s := m.Raft.Server(j.NodeID)
	if s == nil {
		return fmt.Errorf("no node %q in this cluster", j.NodeID)
	}
	// Two processes with the same promises would give each of them twice.
	if there, err := m.askOnce(string(s.Address)); err == nil && there.NodeID == j.NodeID &&
		there.RaftAddr != j.RaftAddr {
		return fmt.Errorf("node %q still runs at %s: stop it first", j.NodeID, s.Address)
	}
	m.Log.Info("a node has moved", "node", s.ID, "from", s.Address, "to", j.RaftAddr)
	// A member that votes keeps its vote: only its address changes.
	return m.Raft.Change(m.Raft.AddNonvoter(s.ID, raft.ServerAddress(j.RaftAddr), seen, timers.AdminTimeout))
}

func addressTaken(by raft.Server) error {
	guards.AddressTaken.Hit()
	return fmt.Errorf("the address %s belongs to node %q: remove it first", by.Address, by.ID)
}
