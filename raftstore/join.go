package raftstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/raftstore/peer"
)

var errNotYet = errors.New("waiting for the leader that took this node in")

// joining is how a node asks to be taken in.
type joining struct {
	NodeID, RaftAddr string
	Format           byte // as in status
	KeepsPromises    bool // on a disk; false from a weir that did not say, too
	Invited          bool // as in identity: if it is a member, it has all it promised
}

// join finds the cluster, or founds it together with others, and returns when this
// node belongs to one for certain: that it was taken in may be undone with the
// leader that did it.
//
// Only the first address of --join ever founds a cluster, and only while as many
// nodes as expected say that they belong to none. So two groups that cannot see
// each other never found two.
func (n *Node) join() {
	told, log := false, joinLog{}
	for ; !n.closing() && !n.settled(); pause(n.ctx, joinEvery) {
		believed := n.believed()
		switch {
		case believed == "" && !n.hasJoined():
			n.attempt(&log, "not in a cluster yet", n.tryJoin)
		case believed == "" || believed == n.options.RaftAddr:
		case !told:
			n.log.Warn("the cluster knows this node at another address and has to be told", "believed", believed, "here", n.options.RaftAddr)
			told = true
			fallthrough
		default:
			n.attempt(&log, "not known at this address yet", n.move)
		}
	}
}

// settled reports whether this node is a member for certain, and known where it is.
func (n *Node) settled() bool {
	return n.hasJoined() && n.machine.committed.Load() != nil && n.believed() == n.options.RaftAddr
}

// attempt asks a leader for something. What it answers may end this node.
func (n *Node) attempt(log *joinLog, failed string, ask func() error) {
	err := ask()
	switch {
	case err == nil:
		return
	// One that was taken in has lost nothing: it is a member that the leader has
	// not reached yet, for example a moment after it was invited to found.
	case errors.Is(err, ErrLostState) && !n.invited():
		n.fatal(err)
	case errors.Is(err, ErrSpentID) && n.pristine():
		n.beginNextLife()
	case errors.Is(err, ErrSpentID):
		n.fatal(ErrRemoved) // with what it has promised, it is the node that was
	}
	if log.due(failed) {
		n.log.Info(failed, "because", err)
	}
}

func (n *Node) tryJoin() error {
	if len(n.options.Join) == 0 && n.pristine() {
		return n.bootstrap([]raft.Server{n.server()})
	}
	found, silent := n.lookAround(n.options.Join)
	for _, s := range found {
		if s.LeaderAddr != "" {
			return n.askIn(s.LeaderAddr)
		}
	}
	if !n.pristine() {
		return errNotYet
	}
	pristine := []raft.Server{n.server()}
	for _, s := range found {
		if !s.Pristine {
			guardFoundedAround.Hit()
			return fmt.Errorf("%s belongs to a cluster that has no leader now", s.NodeID)
		}
		pristine = append(pristine, raft.Server{ID: raft.ServerID(s.NodeID), Address: raft.ServerAddress(s.RaftAddr)})
	}
	switch {
	case len(pristine) < n.options.Expect:
		return fmt.Errorf("found %d of %d nodes of --join%s", len(pristine), n.options.Expect, strings.Join(silent, ""))
	case n.options.Join[0] != n.options.RaftAddr:
		return fmt.Errorf("waiting for %s to found the cluster%s", n.options.Join[0], strings.Join(silent, ""))
	}
	return n.foundWith(pristine)
}

// foundWith founds a cluster with nodes that belong to none, once all of them have
// written down that they are invited.
func (n *Node) foundWith(servers []raft.Server) error {
	for _, s := range servers {
		if string(s.ID) == n.options.NodeID {
			continue
		}
		if err := n.invite(string(s.Address), string(s.ID)); err != nil {
			return fmt.Errorf("%s could not be invited: %w", s.ID, err)
		}
	}
	return n.bootstrap(servers)
}

func (n *Node) invite(addr, id string) error {
	client := peer.NewClient(n.port, addr, id)
	defer client.Close()
	ctx, cancel := context.WithTimeout(n.ctx, adminTimeout)
	defer cancel()
	code, answer, err := client.Call(ctx, callInvite, nil)
	if err != nil {
		return err
	}
	return outcomeOf(code, answer)
}

// beInvited lets this node take part in the cluster that a founder is about to found.
func (n *Node) beInvited(from peer.Identity) error {
	if !n.pristine() {
		guardInvitedElsewhere.Hit()
		return fmt.Errorf("%q belongs to a cluster already", n.options.NodeID)
	}
	n.log.Info("invited to found a cluster", "by", from.NodeID)
	return n.markInvited()
}

func (n *Node) server() raft.Server {
	return raft.Server{ID: raft.ServerID(n.options.NodeID), Address: raft.ServerAddress(n.options.RaftAddr)}
}

func (n *Node) bootstrap(servers []raft.Server) error {
	if err := n.markInvited(); err != nil {
		return err
	}
	err := n.await(n.raft.BootstrapCluster(raft.Configuration{Servers: servers}))
	if err == nil {
		n.log.Info("founding a cluster", "nodes", len(servers))
	}
	return err
}

// lookAround asks who is at the addresses that are not this node's. silent tells of each
// where no node answers why not: it may be a port for clients.
func (n *Node) lookAround(addrs []string) (found []status, silent []string) {
	type answer struct {
		addr   string
		status status
		err    error
	}
	answers := make(chan answer, len(addrs))
	asked := 0
	for _, addr := range addrs {
		if addr == n.options.RaftAddr {
			continue
		}
		asked++
		n.tasks.Go(func() {
			s, err := n.askOnce(addr)
			answers <- answer{addr, s, err}
		})
	}
	for range asked {
		switch a := <-answers; {
		case a.err != nil:
			silent = append(silent, n.silence(a.addr, a.err))
		case a.status.NodeID != "":
			found = append(found, a.status)
		}
	}
	return found, silent
}

// silence tells why no other node answers at an address of --join.
func (n *Node) silence(addr string, err error) string {
	if strings.Contains(err.Error(), peer.ErrSameNode.Error()) {
		return fmt.Sprintf("; the node at %s has the id %q, as this one: give each node its own --node-id, or, if it is this node, "+
			"name it in --join as its --raft-addr does: %s", addr, n.options.NodeID, n.options.RaftAddr)
	}
	return fmt.Sprintf("; no node answers at %s: %v", addr, err)
}

// askOnce asks whoever is at an address for its status.
func (n *Node) askOnce(addr string) (status, error) {
	client := peer.NewClient(n.port, addr, "")
	defer client.Close()
	return ask(n.ctx, client)
}

// askIn asks the leader to take this node in.
func (n *Node) askIn(leader string) error {
	client := peer.NewClient(n.port, leader, "")
	defer client.Close()
	request, err := json.Marshal(joining{n.options.NodeID, n.options.RaftAddr, n.options.Format, n.options.Durability != Memory, n.invited()})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(n.ctx, adminTimeout)
	defer cancel()
	code, answer, err := client.Call(ctx, callJoin, request)
	if err != nil {
		return err
	}
	if err := outcomeOf(code, answer); err != nil {
		return err
	}
	return n.markInvited()
}

// takeIn makes a node a member that does not vote yet.
func (n *Node) takeIn(from peer.Identity, j joining) error {
	if n.reign.Load() == nil {
		return ErrNotLeader
	}
	if from.NodeID != j.NodeID || j.RaftAddr == "" {
		guardJoinForOther.Hit()
		return fmt.Errorf("a node may ask for itself only, %q asked for %q", from.NodeID, j.NodeID)
	}
	if err := n.checkFormat(j); err != nil {
		return err
	}
	seen := n.configuration()
	for _, s := range n.servers() {
		switch {
		case string(s.ID) != j.NodeID && baseOf(string(s.ID)) == baseOf(j.NodeID) && j.KeepsPromises:
			guardLostState.Hit()
			return fmt.Errorf("%w (%q)", ErrLostState, s.ID)
		case string(s.ID) != j.NodeID && baseOf(string(s.ID)) == baseOf(j.NodeID) && isLater(j.NodeID):
			err := n.removeNode(string(s.ID)) // its earlier life is over
			return errors.Join(err, ErrTryAgain)
		case string(s.ID) == j.NodeID && string(s.Address) == j.RaftAddr && (s.Suffrage == raft.Nonvoter || j.Invited):
			return nil // it asks again before it has heard from the leader
		case string(s.ID) == j.NodeID && j.Invited:
			return n.relocate(j, seen)
		case string(s.ID) == j.NodeID:
			guardLostState.Hit()
			return fmt.Errorf("%w (%q)", ErrLostState, j.NodeID)
		case string(s.Address) == j.RaftAddr:
			return addressTaken(s)
		}
	}
	if n.machine.spent(j.NodeID) {
		guardSpentID.Hit()
		return ErrSpentID
	}
	n.log.Info("a node joins", "node", j.NodeID, "address", j.RaftAddr)
	return n.changed(n.raft.AddNonvoter(raft.ServerID(j.NodeID), raft.ServerAddress(j.RaftAddr), seen, adminTimeout))
}

// changed translates what the Raft library says of a change of membership.
func (n *Node) changed(future raft.Future) error {
	err := n.await(future)
	switch {
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipTransferInProgress), errors.Is(err, raft.ErrEnqueueTimeout):
		return ErrTryAgain
	case errors.Is(err, raft.ErrLeadershipLost), errors.Is(err, raft.ErrRaftShutdown):
		return ErrUnknown
	}
	return err
}
