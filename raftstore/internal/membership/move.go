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

// CurrentAddr returns this node's address in the committed configuration, or else in the newest configuration that this
// node knows. It returns "" if the node is not a member.
func (m *Membership) CurrentAddr() string {
	return whereIs(m.Self, m.FSM.Committed.Load(), m.Raft.Servers())
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

// move asks the leader to record this node's new address in the configuration. Until then, other nodes cannot connect
// to this node, but it can connect to them.
func (m *Membership) move() error {
	if m.Leadership.Current.Load() != nil {
		return m.relocate(Joining{NodeID: m.Self, RaftAddr: m.RaftAddr}, m.FSM.Configuration())
	}
	addrs := m.JoinAddrs
	for _, s := range m.Raft.Servers() {
		if string(s.ID) != m.Self {
			addrs = append(addrs[:len(addrs):len(addrs)], string(s.Address))
		}
	}
	found, silent := m.askStatus(addrs)
	if leader := leaderOf(found); leader != "" {
		return m.askIn(leader)
	}
	return errors.New("no node knows a leader" + strings.Join(silent, ""))
}

// relocate changes the address of a member, if the configuration is still the one at log index seen.
func (m *Membership) relocate(j Joining, seen uint64) error {
	for _, s := range m.Raft.Servers() {
		if string(s.Address) == j.RaftAddr && string(s.ID) != j.NodeID {
			return addressInUse(s)
		}
	}
	s := m.Raft.Server(j.NodeID)
	if s == nil {
		return fmt.Errorf("no node %q in this cluster", j.NodeID)
	}
	// Two running processes with one id could both vote in the same term.
	if there, err := m.AskOnce(string(s.Address)); err == nil && there.NodeID == j.NodeID &&
		there.RaftAddr != j.RaftAddr {
		return fmt.Errorf("node %q still runs at %s: stop it first", j.NodeID, s.Address)
	}
	m.Log.Info("a node has moved", "node", s.ID, "from", s.Address, "to", j.RaftAddr)
	// AddNonvoter keeps the vote of a voter and changes only its address.
	return m.Raft.Change(m.Raft.AddNonvoter(s.ID, raft.ServerAddress(j.RaftAddr), seen, timers.AdminTimeout))
}

func addressInUse(by raft.Server) error {
	guards.AddressTaken.Hit()
	return fmt.Errorf("the address %s belongs to node %q: remove it first", by.Address, by.ID)
}
