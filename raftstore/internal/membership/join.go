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
	"github.com/weir-project/weir/raftstore/internal/calls"
	"github.com/weir-project/weir/raftstore/internal/consensus"
	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/internal/format"
	"github.com/weir-project/weir/raftstore/internal/fsm"
	"github.com/weir-project/weir/raftstore/internal/host"
	"github.com/weir-project/weir/raftstore/internal/identity"
	"github.com/weir-project/weir/raftstore/internal/leadership"
	"github.com/weir-project/weir/raftstore/internal/timers"
	"github.com/weir-project/weir/raftstore/peer"
)

const (
	// joinEvery paces the attempts to join.
	joinEvery = 500 * time.Millisecond
)

var errNotYet = errors.New("waiting for the leader that took this node in")

// Joining is how a node asks to be taken in.
type Joining struct {
	NodeID, RaftAddr string
	Format           byte // as in status
	KeepsPromises    bool // on a disk; false from a weir that did not say, too
	Invited          bool // as in identity: if it is a member, it has all it promised
}

// Membership is this node as a member of its cluster: it joins or founds one, and as the leader
// it takes nodes in, gives them votes and removes them.
type Membership struct {
	*host.Host
	Raft       *consensus.Raft
	FSM        *fsm.FSM
	Leadership *leadership.Leadership
	Format     *format.Format
}

// Join finds the cluster, or founds it together with others, and returns when this
// node belongs to one for certain: that it was taken in may be undone with the
// leader that did it.
//
// Only the first address of --join ever founds a cluster, and only while as many
// nodes as expected say that they belong to none. So two groups that cannot see
// each other never found two.
func (m *Membership) Join() {
	told, log := false, joinLog{}
	for ; !m.Closing() && !m.Established(); timers.Pause(m.Ctx, joinEvery) {
		believed := m.Believed()
		switch {
		case believed == "" && !m.Identity.HasJoined():
			m.attempt(&log, "not in a cluster yet", m.TryJoin)
		case believed == "" || believed == m.Options.RaftAddr:
		case !told:
			m.Log.Warn("the cluster knows this node at another address and has to be told", "believed", believed, "here",
				m.Options.RaftAddr)
			told = true
			fallthrough
		default:
			m.attempt(&log, "not known at this address yet", m.move)
		}
	}
}

// Established reports whether this node is a member for certain, and known where it is.
func (m *Membership) Established() bool {
	return m.Identity.HasJoined() && m.FSM.Committed.Load() != nil && m.Believed() == m.Options.RaftAddr
}

// attempt asks a leader for something. What it answers may end this node.
func (m *Membership) attempt(log *joinLog, failed string, ask func() error) {
	err := ask()
	switch {
	case err == nil:
		return
	// One that was taken in has lost nothing: it is a member that the leader has
	// not reached yet, for example a moment after it was invited to found.
	case errors.Is(err, failure.ErrLostState) && !m.Identity.WasInvited():
		m.Fatal(err)
	case errors.Is(err, failure.ErrSpentID) && m.Pristine():
		m.beginNewIncarnation()
	case errors.Is(err, failure.ErrSpentID):
		m.Fatal(failure.ErrRemoved) // with what it has promised, it is the node that was
	}
	if log.due(failed) {
		m.Log.Info(failed, "because", err)
	}
}

func (m *Membership) TryJoin() error {
	if len(m.Options.Join) == 0 && m.Pristine() {
		return m.bootstrap([]raft.Server{m.Server()})
	}
	found, silent := m.lookAround(m.Options.Join)
	for _, s := range found {
		if s.LeaderAddr != "" {
			return m.askIn(s.LeaderAddr)
		}
	}
	if !m.Pristine() {
		return errNotYet
	}
	pristine := []raft.Server{m.Server()}
	for _, s := range found {
		if !s.Pristine {
			guards.FoundedAround.Hit()
			return fmt.Errorf("%s belongs to a cluster that has no leader now", s.NodeID)
		}
		pristine = append(pristine, raft.Server{ID: raft.ServerID(s.NodeID), Address: raft.ServerAddress(s.RaftAddr)})
	}
	switch {
	case len(pristine) < m.Options.Expect:
		return fmt.Errorf("found %d of %d nodes of --join%s", len(pristine), m.Options.Expect, strings.Join(silent, ""))
	case m.Options.Join[0] != m.Options.RaftAddr:
		return fmt.Errorf("waiting for %s to found the cluster%s", m.Options.Join[0], strings.Join(silent, ""))
	}
	return m.foundWith(pristine)
}

// foundWith founds a cluster with nodes that belong to none, once all of them have
// written down that they are invited.
func (m *Membership) foundWith(servers []raft.Server) error {
	for _, s := range servers {
		if string(s.ID) == m.Options.NodeID {
			continue
		}
		if err := m.invite(string(s.Address), string(s.ID)); err != nil {
			return fmt.Errorf("%s could not be invited: %w", s.ID, err)
		}
	}
	return m.bootstrap(servers)
}

func (m *Membership) invite(addr, id string) error {
	client := peer.NewClient(m.Port, addr, id)
	defer client.Close()
	ctx, cancel := context.WithTimeout(m.Ctx, timers.AdminTimeout)
	defer cancel()
	code, answer, err := client.Call(ctx, calls.Invite, nil)
	if err != nil {
		return err
	}
	return calls.OutcomeOf(code, answer)
}

// BeInvited lets this node take part in the cluster that a founder is about to found.
func (m *Membership) BeInvited(from peer.Identity) error {
	if !m.Pristine() {
		guards.InvitedElsewhere.Hit()
		return fmt.Errorf("%q belongs to a cluster already", m.Options.NodeID)
	}
	m.Log.Info("invited to found a cluster", "by", from.NodeID)
	return m.Identity.MarkInvited()
}

func (m *Membership) Server() raft.Server {
	return raft.Server{ID: raft.ServerID(m.Options.NodeID), Address: raft.ServerAddress(m.Options.RaftAddr)}
}

func (m *Membership) bootstrap(servers []raft.Server) error {
	if err := m.Identity.MarkInvited(); err != nil {
		return err
	}
	err := m.Raft.Await(m.Raft.BootstrapCluster(raft.Configuration{Servers: servers}))
	if err == nil {
		m.Log.Info("founding a cluster", "nodes", len(servers))
	}
	return err
}

// lookAround asks who is at the addresses that are not this node's. silent tells of each
// where no node answers why not: it may be a port for clients.
func (m *Membership) lookAround(addrs []string) (found []host.Status, silent []string) {
	type answer struct {
		addr   string
		status host.Status
		err    error
	}
	answers := make(chan answer, len(addrs))
	asked := 0
	for _, addr := range addrs {
		if addr == m.Options.RaftAddr {
			continue
		}
		asked++
		m.Tasks.Go(func() {
			s, err := m.askOnce(addr)
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

// silence tells why no other node answers at an address of --join.
func (m *Membership) silence(addr string, err error) string {
	if strings.Contains(err.Error(), peer.ErrSameNode.Error()) {
		return fmt.Sprintf("; the node at %s has the id %q, as this one: give each node its own --node-id, or, if it is "+
			"this node, "+
			"name it in --join as its --raft-addr does: %s", addr, m.Options.NodeID, m.Options.RaftAddr)
	}
	return fmt.Sprintf("; no node answers at %s: %v", addr, err)
}

// askOnce asks whoever is at an address for its status.
func (m *Membership) askOnce(addr string) (host.Status, error) {
	client := peer.NewClient(m.Port, addr, "")
	defer client.Close()
	return host.Ask(m.Ctx, client)
}

// askIn asks the leader to take this node in.
func (m *Membership) askIn(leader string) error {
	client := peer.NewClient(m.Port, leader, "")
	defer client.Close()
	request, err := json.Marshal(Joining{m.Options.NodeID, m.Options.RaftAddr, m.Options.Format,
		m.Options.Durability != identity.Memory, m.Identity.WasInvited()})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(m.Ctx, timers.AdminTimeout)
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

// TakeIn makes a node a member that does not vote yet.
func (m *Membership) TakeIn(from peer.Identity, j Joining) error {
	if m.Leadership.Current.Load() == nil {
		return failure.ErrNotLeader
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
		case string(s.ID) != j.NodeID && identity.GivenID(string(s.ID)) == identity.GivenID(j.NodeID) && j.KeepsPromises:
			guards.LostState.Hit()
			return fmt.Errorf("%w (%q)", failure.ErrLostState, s.ID)
		case string(s.ID) != j.NodeID && identity.GivenID(string(s.ID)) == identity.GivenID(j.NodeID) &&
			identity.IsIncarnation(j.NodeID):
			err := m.removeNode(string(s.ID)) // its earlier incarnation is over
			return errors.Join(err, failure.ErrTryAgain)
		case string(s.ID) == j.NodeID && string(s.Address) == j.RaftAddr && (s.Suffrage == raft.Nonvoter || j.Invited):
			return nil // it asks again before it has heard from the leader
		case string(s.ID) == j.NodeID && j.Invited:
			return m.relocate(j, seen)
		case string(s.ID) == j.NodeID:
			guards.LostState.Hit()
			return fmt.Errorf("%w (%q)", failure.ErrLostState, j.NodeID)
		case string(s.Address) == j.RaftAddr:
			return addressTaken(s)
		}
	}
	if m.FSM.Spent(j.NodeID) {
		guards.SpentID.Hit()
		return failure.ErrSpentID
	}
	m.Log.Info("a node joins", "node", j.NodeID, "address", j.RaftAddr)
	return m.Raft.Change(m.Raft.AddNonvoter(raft.ServerID(j.NodeID), raft.ServerAddress(j.RaftAddr), seen,
		timers.AdminTimeout))
}

// beginNewIncarnation gives the empty directory of a node whose id is spent another id, and
// ends the process: the id is part of everything that runs.
func (m *Membership) beginNewIncarnation() {
	id := identity.NewIncarnation(m.Options.NodeID)
	if len(id) > peer.MaxNameLen {
		m.Fatal(fmt.Errorf("the id %q is spent, and too long for a later life: give this node another --node-id",
			m.Options.NodeID))
		return
	}
	if err := m.Identity.Rename(id); err != nil {
		m.Fatal(err)
		return
	}
	m.Fatal(fmt.Errorf("%w: it is %q when it is started again", failure.ErrSpentID, id))
}

// Pristine reports whether this node has promised nothing to anyone.
func (m *Membership) Pristine() bool {
	return m.Raft.LastIndex() == 0 && m.Raft.CurrentTerm() == 0 && len(m.Raft.Servers()) == 0
}

// Joined takes note of the cluster this node belongs to, and of what it agreed on.
func (m *Membership) Joined(f fsm.Constants) {
	if f.TestClock != m.TestClock {
		m.Fatal(fmt.Errorf("%w: the cluster's is a test clock: %t, this node's: %t", failure.ErrClockKind, f.TestClock,
			m.TestClock))
	}
	if f.IDLifetimeNs != m.IdLifetimeNs {
		m.Log.Warn("the cluster remembers ids for another time than this node was told; the cluster's counts",
			"cluster", time.Duration(f.IDLifetimeNs), "here", time.Duration(m.IdLifetimeNs))
	}
	news, err := m.Identity.BelongTo(f.ClusterID)
	if err != nil {
		m.Fatal(err)
	}
	if news {
		m.Log.Info("this node belongs to a cluster", "cluster", f.ClusterID)
	}
}
