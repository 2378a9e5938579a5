package raftstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/raftstore/internal/calls"
	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/internal/identity"
	"github.com/weir-project/weir/raftstore/internal/timers"
)

var errNobodyUp = errors.New("no other node that votes is up")

// order is a change of the cluster that any node may be asked for and the leader
// carries out.
type order struct {
	What   string // add, remove, transfer, advance
	ID     string
	Addr   string
	MoveNs int64 // of the test clock
}

// give carries an order out here or has the leader do it.
func (m *membership) give(o order) error {
	if m.leadership.current.Load() != nil {
		return m.carryOut(o)
	}
	client := m.peers.client(m.raft.Leader())
	if client == nil {
		return failure.ErrNoLeader
	}
	b, err := json.Marshal(o)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(m.ctx, timers.AdminTimeout)
	defer cancel()
	code, answer, err := client.Call(ctx, calls.Admin, b)
	if err != nil {
		return err
	}
	return calls.OutcomeOf(code, answer)
}

func (m *membership) carryOut(o order) error {
	if m.leadership.current.Load() == nil {
		return failure.ErrNotLeader
	}
	switch o.What {
	case "add":
		return m.addNode(o)
	case "remove":
		return m.removeNode(o.ID)
	case "transfer":
		return m.leadership.transfer(o.ID)
	case "advance":
		return m.leadership.advanceHere(o.MoveNs)
	}
	return fmt.Errorf("this version of weir does not know the order %q", o.What)
}

func (m *membership) addNode(o order) error {
	if err := identity.CheckGivenID(o.ID); err != nil {
		return err
	}
	seen := m.machine.Configuration()
	if m.raft.Server(o.ID) != nil {
		return fmt.Errorf("node %q is a member already", o.ID)
	}
	if m.machine.Spent(o.ID) {
		return fmt.Errorf("%w (%q): start it with an empty directory and --join, and it takes another", failure.ErrSpentID, o.ID)
	}
	return m.raft.Change(m.raft.AddNonvoter(raft.ServerID(o.ID), raft.ServerAddress(o.Addr), seen, timers.AdminTimeout))
}

func (m *membership) removeNode(id string) error {
	if m.raft.Server(id) == nil {
		// Its later life is not meant: who asks twice to be sure would remove what came back.
		if s := m.raft.ServerCalled(id); s != nil {
			return fmt.Errorf("no node %q in this cluster: %q came back in its place", id, s.ID)
		}
		return fmt.Errorf("no node %q in this cluster", id)
	}
	m.log.Info("removing a node", "node", id)
	return m.raft.Change(m.raft.RemoveServer(raft.ServerID(id), 0, timers.AdminTimeout))
}
