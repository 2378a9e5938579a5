package raftstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/hashicorp/raft"
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

// AddNode makes the node with this id and inter-node address a member; it votes
// when it has caught up.
func (n *Node) AddNode(id, raftAddr string) error {
	return n.give(order{What: "add", ID: id, Addr: raftAddr})
}

// RemoveNode takes a node out of the cluster. It must not come back under its id.
func (n *Node) RemoveNode(id string) error { return n.give(order{What: "remove", ID: id}) }

// TransferLeadership hands leadership to a node; to the most advanced when to is
// empty.
func (n *Node) TransferLeadership(to string) error { return n.give(order{What: "transfer", ID: to}) }

// give carries an order out here or has the leader do it.
func (n *Node) give(o order) error {
	if n.reign.Load() != nil {
		return n.carryOut(o)
	}
	client := n.leaderClient()
	if client == nil {
		return ErrNoLeader
	}
	b, err := json.Marshal(o)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(n.ctx, adminTimeout)
	defer cancel()
	code, answer, err := client.Call(ctx, callAdmin, b)
	if err != nil {
		return err
	}
	return outcomeOf(code, answer)
}

func (n *Node) carryOut(o order) error {
	if n.reign.Load() == nil {
		return ErrNotLeader
	}
	switch o.What {
	case "add":
		return n.addNode(o)
	case "remove":
		return n.removeNode(o.ID)
	case "transfer":
		return n.transfer(o.ID)
	case "advance":
		return n.advanceHere(o.MoveNs)
	}
	return fmt.Errorf("this version of weir does not know the order %q", o.What)
}

func (n *Node) addNode(o order) error {
	if err := checkGivenID(o.ID); err != nil {
		return err
	}
	seen := n.configuration()
	if n.member(o.ID) != nil {
		return fmt.Errorf("node %q is a member already", o.ID)
	}
	if n.machine.spent(o.ID) {
		return fmt.Errorf("%w (%q): start it with an empty directory and --join, and it takes another", ErrSpentID, o.ID)
	}
	return n.changed(n.raft.AddNonvoter(raft.ServerID(o.ID), raft.ServerAddress(o.Addr), seen, adminTimeout))
}

func (n *Node) removeNode(id string) error {
	if n.member(id) == nil {
		// Its later life is not meant: who asks twice to be sure would remove what came back.
		if s := n.memberCalled(id); s != nil {
			return fmt.Errorf("no node %q in this cluster: %q came back in its place", id, s.ID)
		}
		return fmt.Errorf("no node %q in this cluster", id)
	}
	n.log.Info("removing a node", "node", id)
	return n.changed(n.raft.RemoveServer(raft.ServerID(id), 0, adminTimeout))
}

func (n *Node) transfer(to string) error {
	if to == n.options.NodeID {
		return nil
	}
	if to == "" {
		s, ok := n.successor()
		if !ok {
			return errNobodyUp
		}
		return n.handOver(s)
	}
	s := n.memberCalled(to)
	if s == nil {
		return fmt.Errorf("no node %q in this cluster", to)
	}
	return n.handOver(*s)
}

// member returns a member of the cluster by its id, or nil.
func (n *Node) member(id string) *raft.Server {
	return serverOf(n.servers(), id)
}
