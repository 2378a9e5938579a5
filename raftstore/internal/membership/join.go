package membership

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/internal/guards"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore/internal/calls"
	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/internal/host"
	"github.com/weir-project/weir/raftstore/internal/identity"
	"github.com/weir-project/weir/raftstore/internal/timers"
	"github.com/weir-project/weir/raftstore/peer"
	"github.com/weir-project/weir/raftstore/wire"
)

const (
	// joinEvery is the pause between two attempts to join.
	joinEvery = 500 * time.Millisecond
)

var (
	errNotYet  = errors.New("waiting for the leader that accepted this node")
	errNoOrder = errors.New("waiting for the move of a replica to this node")
)

// Joining is the request of a node to become a member.
type Joining struct {
	NodeID, RaftAddr string
	Format           byte // as in host.Status
	KeepsPromises    bool // the node keeps its votes on disk
	Invited          bool // as in identity.Identity: a member with this mark has not lost its votes
}

// Membership manages this node's membership in its cluster. The node joins or bootstraps a cluster. The leader adds
// nodes, promotes them and removes them.
type Membership struct {
	Config
	promoting, removing timers.Single
}

// Join joins the cluster, or bootstraps it together with other nodes. It returns when this node certainly belongs to
// a cluster. An accepted join is not certain, because it may be lost with its leader.
//
// Only the first address of --join that shall vote ever bootstraps a cluster, and only while as many nodes as expected
// report that they belong to none. So two sets of nodes that cannot reach each other never bootstrap two clusters.
func (m *Membership) Join() {
	told, log := false, joinLog{}
	for ; !m.Life.Closing() && !m.Established(); timers.Pause(m.Life.Ctx, joinEvery) {
		believed := m.CurrentAddr()
		switch {
		case believed == "" && !m.Identity.HasJoined():
			if m.First != nil && !m.First.Joined() {
				continue
			}
			m.attempt(&log, "not in a cluster yet", m.TryJoin)
		case believed == "" || believed == m.RaftAddr:
		case !told:
			m.Log.Warn("the cluster has another address of this node, which must be updated",
				"believed", believed, "here", m.RaftAddr)
			told = true
			fallthrough
		default:
			m.attempt(&log, "the cluster has not updated the address of this node yet", m.move)
		}
	}
}

// Established reports whether this node is certainly a member, at its current address.
func (m *Membership) Established() bool {
	return m.Identity.HasJoined() && m.FSM.Committed.Load() != nil && m.CurrentAddr() == m.RaftAddr
}

// attempt asks a leader to add or to move this node. Some answers end the process.
func (m *Membership) attempt(log *joinLog, failed string, ask func() error) {
	err := ask()
	switch {
	case err == nil:
		return
	// A node that was invited has lost nothing. It is a member that the leader has not reached yet, for example just
	// after the invitation to bootstrap.
	case errors.Is(err, failure.ErrLostState) && !m.Identity.WasInvited():
		m.Fatal(err)
	case errors.Is(err, failure.ErrRemovedID) && m.Pristine() && !m.onOrder():
		m.beginNewIncarnation()
	case errors.Is(err, failure.ErrRemovedID):
		m.Fatal(failure.ErrRemoved) // a node with a log or a term is the removed node itself
	}
	if log.due(failed) {
		m.Log.Info(failed, "because", err)
	}
}

// TryJoin makes one attempt to join or to bootstrap a cluster.
func (m *Membership) TryJoin() error {
	switch alone := len(m.JoinAddrs) == 0 && m.Pristine(); {
	case alone && m.onOrder():
		return errors.New("no other node is known yet") // its founders name themselves to each other
	case alone:
		return m.bootstrap([]raft.Server{m.Server()})
	}
	found, silent := m.askStatus(m.JoinAddrs)
	if leader := leaderOf(found); leader != "" {
		return m.askIn(leader)
	}
	if leader := m.leaderKnownToFirst(); leader != "" {
		return m.askIn(leader)
	}
	if !m.Pristine() {
		return errNotYet
	}
	pristine, err := m.Founders(found)
	switch {
	case err != nil:
		return err
	case len(pristine) < m.Expect:
		return fmt.Errorf("found %d of %d nodes of --join%s", len(pristine), m.Expect, strings.Join(silent, ""))
	case m.Founder(pristine) != m.RaftAddr:
		return fmt.Errorf("waiting for %s to found the cluster%s", m.Founder(pristine), strings.Join(silent, ""))
	}
	return m.foundWith(pristine)
}

// checkGroups returns an error if the node with status s cannot found a cluster with this node's number of Raft
// groups.
func (m *Membership) checkGroups(s host.Status) error {
	switch {
	case m.Replicas > 0 && s.Format < wire.Growing:
		return fmt.Errorf("%s runs an older weir, which knows no --replicas: upgrade it first", s.NodeID)
	case m.Replicas != s.Replicas:
		return fmt.Errorf("%s was started with --replicas %d, this node with --replicas %d: give all nodes the same",
			s.NodeID, s.Replicas, m.Replicas)
	case m.Groups == s.Groups.N():
		return nil
	case s.Format < wire.Groups:
		return fmt.Errorf("%s runs an older weir, which knows no --groups: upgrade it first", s.NodeID)
	}
	return fmt.Errorf("%s was started with --groups %d, this node with --groups %d: give all nodes the same", s.NodeID,
		s.Groups.N(), m.Groups)
}

// Server returns this node as a server of a configuration.
func (m *Membership) Server() raft.Server {
	return raft.Server{ID: raft.ServerID(m.Self), Address: raft.ServerAddress(m.RaftAddr)}
}

// askStatus asks the nodes at the given addresses, except this node's own, for their status. silent explains each
// address without an answer. Such an address may be a port for clients.
func (m *Membership) askStatus(addrs []string) (found []host.Status, silent []string) {
	type answer struct {
		addr   string
		status host.Status
		err    error
	}
	answers := make(chan answer, len(addrs))
	asked := 0
	for _, addr := range addrs {
		if addr == m.RaftAddr {
			continue
		}
		asked++
		m.Life.Tasks.Go(func() {
			s, err := m.AskOnce(addr)
			answers <- answer{addr, s, err}
		})
	}
	for range asked {
		switch a := <-answers; {
		case a.err != nil:
			silent = append(silent, m.silence(a.addr, a.err))
		case a.status.NodeID != "":
			found = append(found, a.status)
		}
	}
	return found, silent
}

// silence explains why no other node answers at an address of --join.
func (m *Membership) silence(addr string, err error) string {
	if strings.Contains(err.Error(), peer.ErrSameNode.Error()) {
		return fmt.Sprintf("; the node at %s has the id %q, as this one: give each node its own --node-id, "+
			"or, if it is this node, name it in --join as its --raft-addr does: %s", addr, m.Self,
			m.RaftAddr)
	}
	return fmt.Sprintf("; no node answers at %s: %v", addr, err)
}

// AskOnce asks the node at an address for its status.
func (m *Membership) AskOnce(addr string) (host.Status, error) {
	client := m.Dial(addr, "")
	defer client.Close()
	return host.Ask(m.Life.Ctx, client)
}

// askIn asks the leader to add this node to the cluster, or to record its new address.
func (m *Membership) askIn(leader string) error {
	client := m.Dial(leader, "")
	defer client.Close()
	request, err := json.Marshal(Joining{m.Self, m.RaftAddr, m.Reads,
		m.KeepsPromises, m.Identity.WasInvited()})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(m.Life.Ctx, timers.AdminTimeout)
	defer cancel()
	code, answer, err := client.Call(ctx, calls.Join, request)
	if err != nil {
		return err
	}
	if err := calls.OutcomeOf(code, answer); err != nil {
		return err
	}
	return m.Identity.MarkInvited()
}

// AddNonvoter carries out the request of the node from. It adds the node without a vote, or records the new address of
// a member. It returns ErrLostState if the id belongs to a member whose votes the node has lost.
func (m *Membership) AddNonvoter(from peer.Identity, j Joining) error {
	if m.Leadership.Current.Load() == nil {
		return limiter.ErrNotLeader
	}
	if from.NodeID != j.NodeID || j.RaftAddr == "" {
		guards.JoinForOther.Hit()
		return fmt.Errorf("a node may ask for itself only, %q asked for %q", from.NodeID, j.NodeID)
	}
	if err := m.Format.CheckNewcomer(j.NodeID, j.Format); err != nil {
		return err
	}
	seen := m.FSM.Configuration()
	for _, s := range m.Raft.Servers() {
		switch {
		case string(s.ID) != j.NodeID && identity.GivenID(string(s.ID)) == identity.GivenID(j.NodeID) &&
			m.First != nil:
			return m.replaceIncarnation(string(s.ID), j.NodeID)
		case string(s.ID) != j.NodeID && identity.GivenID(string(s.ID)) == identity.GivenID(j.NodeID) &&
			j.KeepsPromises:
			guards.LostState.Hit()
			return fmt.Errorf("%w (%q)", failure.ErrLostState, s.ID)
		case string(s.ID) != j.NodeID && identity.GivenID(string(s.ID)) == identity.GivenID(j.NodeID) &&
			identity.IsIncarnation(j.NodeID):
			err := m.removeNode(string(s.ID), 0) // its earlier incarnation has ended
			return errors.Join(err, limiter.ErrTryAgain)
		case string(s.ID) == j.NodeID && string(s.Address) == j.RaftAddr &&
			(s.Suffrage == raft.Nonvoter && !m.founds(j.NodeID) || j.Invited):
			return nil // the node asks again before the leader has contacted it
		case string(s.ID) == j.NodeID && j.Invited:
			return m.relocate(j, seen)
		case string(s.ID) == j.NodeID:
			guards.LostState.Hit()
			return fmt.Errorf("%w (%q)", failure.ErrLostState, j.NodeID)
		case string(s.Address) == j.RaftAddr:
			return addressInUse(s)
		}
	}
	if m.FSM.Spent(j.NodeID) {
		guards.SpentID.Hit()
		return failure.ErrRemovedID
	}
	if m.onOrder() {
		return errNoOrder
	}
	if err := m.mayEnter(j.NodeID); err != nil {
		return err
	}
	m.Log.Info("a node joins", "node", j.NodeID, "address", j.RaftAddr)
	return m.Raft.Change(m.Raft.AddNonvoter(raft.ServerID(j.NodeID), raft.ServerAddress(j.RaftAddr), seen,
		timers.AdminTimeout))
}

// beginNewIncarnation writes a new id into the empty directory of this node, because a member with the old id was
// removed. It then ends the process, because all running components have the old id.
func (m *Membership) beginNewIncarnation() {
	id := identity.NewIncarnation(m.Self)
	if len(id) > peer.MaxNameLen {
		m.Fatal(fmt.Errorf("the id %q was used, and is too long for a new incarnation: give this node another "+
			"--node-id",
			m.Self))
		return
	}
	if err := m.Identity.Rename(id); err != nil {
		m.Fatal(err)
		return
	}
	m.Fatal(fmt.Errorf("%w: the next start joins as %q", failure.ErrRemovedID, id))
}

// Pristine reports whether this node has no log, no term and no configuration, so that it cannot have voted.
func (m *Membership) Pristine() bool {
	return m.Raft.LastIndex() == 0 && m.Raft.CurrentTerm() == 0 && len(m.Raft.Servers()) == 0
}
