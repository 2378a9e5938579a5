package membership

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore/internal/calls"
	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/internal/identity"
	"github.com/weir-project/weir/raftstore/internal/timers"
	"github.com/weir-project/weir/raftstore/peer"
)

// Order is a change of the cluster. Any node accepts it, and the leader carries it out.
type Order struct {
	What   string // add, remove, release, promote, demote, transfer, advance, belongs
	ID     string
	Addr   string
	MoveNs int64 // distance for the test clock
}

// belongs is the order that asks whether the group has a node. It changes nothing.
const belongs = "belongs"

// Give carries out an order if this node leads, and otherwise sends it to the leader.
func (m *Membership) Give(o Order) error {
	if m.Leadership.Current.Load() != nil {
		return m.Execute(o)
	}
	client := m.Peers.Client(m.Raft.Leader())
	if client == nil {
		return limiter.ErrClusterDown
	}
	b, err := json.Marshal(o)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(m.Life.Ctx, timers.AdminTimeout)
	defer cancel()
	code, answer, err := client.Call(ctx, calls.Admin, b)
	switch {
	case errors.Is(err, peer.ErrNotSent):
		return limiter.ErrClusterDown
	case err != nil:
		return limiter.ErrUnknownOutcome
	}
	return calls.OutcomeOf(code, answer)
}

// Execute carries out an order. It returns ErrNotLeader if this node does not lead.
func (m *Membership) Execute(o Order) error {
	if m.Leadership.Current.Load() == nil {
		return limiter.ErrNotLeader
	}
	switch o.What {
	case "add":
		return m.addNode(o)
	case "remove":
		return m.removeNode(o.ID, 0)
	case "release":
		return m.releaseReplica(o.ID)
	case "promote":
		return m.promoteNode(o.ID)
	case "demote":
		return m.demoteNode(o.ID)
	case "transfer":
		return m.Leadership.Transfer(o.ID)
	case "advance":
		return m.Leadership.AdvanceHere(o.MoveNs)
	case belongs:
		return m.answerBelongs(o.ID)
	}
	return fmt.Errorf("this version of weir does not know the request %q", o.What)
}

func (m *Membership) addNode(o Order) error {
	seen := m.FSM.Configuration()
	if err := m.checkAdded(o.ID); err != nil {
		return err
	}
	if m.Raft.Server(o.ID) != nil {
		return fmt.Errorf("node %q is a member already", o.ID)
	}
	if m.FSM.Spent(o.ID) {
		return fmt.Errorf("%w (%q): start it with an empty directory and --join, and it joins under a new id",
			failure.ErrRemovedID, o.ID)
	}
	if err := m.mayEnter(o.ID); err != nil {
		return err
	}
	return m.Raft.Change(m.Raft.AddNonvoter(raft.ServerID(o.ID), raft.ServerAddress(o.Addr), seen, timers.AdminTimeout))
}

// checkAdded returns an error unless an order may add a node with this id. To a group on a part of the nodes, an order
// adds a replica that was opened for it, and one more than the group shall have at most.
func (m *Membership) checkAdded(id string) error {
	switch {
	case !m.onOrder():
		return identity.CheckGivenID(id)
	case len(m.Raft.Servers()) > m.Replicas:
		return fmt.Errorf("the group has %d replicas, and shall have %d", len(m.Raft.Servers()), m.Replicas)
	}
	return nil
}

// onOrder reports whether only an order adds replicas to this group: it is one of those on a part of the nodes. A
// replica whose move was undone must not join by itself later.
func (m *Membership) onOrder() bool { return m.First != nil && m.Replicas > 0 }

// releaseReplica removes a node, unless the group would have too few replicas. Two moves at the same time may have
// looked at the same members.
func (m *Membership) releaseReplica(id string) error {
	seen, voters := m.FSM.Configuration(), m.Raft.Voters()
	if slices.Contains(voters, id) && len(voters) <= m.Replicas {
		return fmt.Errorf("the group has %d replicas, and shall have %d: give it another one first", len(voters),
			m.Replicas)
	}
	return m.removeNode(id, seen)
}

// removeNode removes a node, unless the members have changed since the entry seen. 0 is any entry.
func (m *Membership) removeNode(id string, seen uint64) error {
	if m.Raft.Server(id) == nil {
		// The order does not name a later incarnation: a caller that repeats it would otherwise remove the node that
		// came back.
		if s := m.Raft.ServerCalled(id); s != nil {
			return fmt.Errorf("no node %q in this cluster: it rejoined as %q", id, s.ID)
		}
		return fmt.Errorf("no node %q in this cluster", id)
	}
	m.Log.Info("removing a node", "node", id)
	return m.Raft.Change(m.Raft.RemoveServer(raft.ServerID(id), seen, timers.AdminTimeout))
}
