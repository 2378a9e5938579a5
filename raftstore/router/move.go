package router

import (
	"context"
	"errors"
	"fmt"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore/internal/away"
	"github.com/weir-project/weir/raftstore/internal/calls"
	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/internal/timers"
	"github.com/weir-project/weir/raftstore/peer"
)

// A move takes steps: open a replica on the target, let it catch up and vote, hand the leadership over, remove the
// replica of the source. Each call looks at the group and makes the next step, so nothing remembers a move: a caller
// repeats the call until the move is done, also after a crash, and from another node. The same move in the other
// direction undoes an unfinished one.

// moving is one step of a move.
type moving struct {
	of       *Node
	group    int
	g        reachable
	first    *limiter.Topology // the nodes
	t        *limiter.Topology // the members, as the leader of the group knows them
	from, to *limiter.Member   // in the first group; nil: none was named
}

// MoveReplica makes the next step of moving a replica of a group from one node to another; see limiter.Replica.
func (n *Node) MoveReplica(group int, from, to string) (limiter.Move, error) {
	m, err := n.startStep(group, from, to)
	if err != nil {
		return limiter.Move{}, err
	}
	return m.step()
}

// startStep looks at the group, and checks what it was told.
func (n *Node) startStep(group int, from, to string) (*moving, error) {
	switch {
	case n.replicas == 0:
		return nil, errors.New("every node of this cluster has a replica of every group: only a cluster that was " +
			"founded with --replicas has replicas to move")
	case group < 0 || group >= len(n.all()):
		return nil, fmt.Errorf("the cluster has %d groups, from 0 to %d", len(n.all()), len(n.all())-1)
	case from == to:
		return nil, fmt.Errorf("a replica moves to another node than %q", to)
	}
	_, first, err := n.current(0)
	if err != nil {
		return nil, err
	}
	g, t, err := n.ledBy(group)
	if err != nil {
		return nil, err
	}
	m := &moving{of: n, group: group, g: g, first: first, t: t, from: first.Member(from), to: first.Member(to)}
	switch {
	case from != "" && m.from == nil:
		return nil, fmt.Errorf("no node %q in this cluster", from)
	case to != "" && m.to == nil:
		return nil, fmt.Errorf("no node %q in this cluster", to)
	case t.Leader == "":
		return nil, fmt.Errorf("%w: group %d", limiter.ErrClusterDown, group)
	}
	return m, nil
}

// ledBy returns a group and its members as its leader knows them now. The copy of a follower may lack a change, and a
// move that was just begun would look undone.
func (n *Node) ledBy(group int) (reachable, *limiter.Topology, error) {
	m := n.all()[group]
	a := m.away
	if m.live != nil {
		if _, leads := n.nodes[group].Load().Led(); leads {
			return n.current(group)
		}
	}
	if a == nil {
		// the first group, which no other code takes for one that is away
		t := n.base().Topology()
		a = n.newAway(group, func() []string { return addressesOf(t, []string{t.Leader}) })
	}
	t, err := a.Current()
	if m.live != nil {
		return m.live, t, err
	}
	return a, t, err
}

// in returns the member of the group on a node, or nil. Nodes that only follow the first group have no replica of it.
func (m *moving) in(node *limiter.Member) *limiter.Member {
	if node == nil {
		return nil
	}
	if of := memberAt(m.t, node.RaftAddr); of != nil && (of.Voter || m.group > 0) {
		return of
	}
	return nil
}

func (m *moving) step() (limiter.Move, error) {
	source, target := m.in(m.from), m.in(m.to)
	switch {
	case m.to != nil && target == nil:
		if err := m.mayAdd(source); err != nil {
			return limiter.Move{}, err
		}
		return limiter.Move{Step: "a replica opens on " + m.to.ID}, m.add()
	case target != nil && !target.Voter && source != nil && !source.Voter:
		return limiter.Move{}, fmt.Errorf("%s and %s both catch up with group %d", m.from.ID, m.to.ID, m.group)
	case target != nil && !target.Voter:
		return limiter.Move{Waits: true, Step: catchingUp(m.to, target)}, nil
	case source == nil:
		return limiter.Move{Done: true}, nil
	}
	if err := m.mayRemove(source); err != nil {
		return limiter.Move{}, err
	}
	if source.ID == m.t.Leader {
		next := "" // any other voter
		if target != nil {
			next = target.ID
		}
		return limiter.Move{Step: "the leadership moves from " + m.from.ID}, m.g.TransferLeadership(next)
	}
	return limiter.Move{Step: "the replica on " + m.from.ID + " is removed"}, m.remove(source)
}

// catchingUp says how far a new replica is. Until its first status its lag is unknown.
func catchingUp(on, replica *limiter.Member) string {
	switch {
	case !on.Up:
		return on.ID + " is down: its replica catches up when it is back"
	case !replica.Up:
		return "the replica on " + on.ID + " catches up"
	}
	return fmt.Sprintf("the replica on %s catches up; entries left: %d", on.ID, replica.LagEntries)
}

// mayAdd returns an error unless the group may get a replica on the target now.
func (m *moving) mayAdd(source *limiter.Member) error {
	members := m.t.Count(func(of *limiter.Member) bool { return of.Voter || m.group > 0 })
	switch {
	case !m.to.Up:
		return fmt.Errorf("node %q is not up", m.to.ID)
	case m.from != nil && source == nil:
		return fmt.Errorf("node %q has no replica of group %d", m.from.ID, m.group)
	case m.from == nil && members >= m.of.replicas:
		return fmt.Errorf("group %d has %d replicas, and shall have %d: name the node that gives its replica away",
			m.group, members, m.of.replicas)
	case members > m.of.replicas:
		return fmt.Errorf("group %d has %d replicas, and shall have %d: finish the move that is under way, or undo it",
			m.group, members, m.of.replicas)
	}
	return nil
}

// add gives the target a replica. In the first group, which it follows already, that is a vote.
func (m *moving) add() error {
	if m.group == 0 {
		return m.of.nodes[0].Load().Promote(m.to.ID)
	}
	id, err := m.tell(m.to, calls.Host)
	if err == nil {
		err = m.g.AddNode(string(id), m.to.RaftAddr)
	}
	if errors.Is(err, failure.ErrRemovedID) {
		err = limiter.ErrTryAgain // until the target notices that its replica was removed
	}
	return err
}

// tell makes a call about the group to a node, which may be this one.
func (m *moving) tell(node *limiter.Member, method byte) (answer []byte, err error) {
	payload := away.Head(m.group, method)
	if node.ID == m.first.Self {
		status, answer := m.of.answerCall(peer.Identity{}, calls.Group, payload)
		return answer, calls.OutcomeOf(status, answer)
	}
	ctx, cancel := context.WithTimeout(m.of.life, timers.AdminTimeout)
	defer cancel()
	status, answer, err := m.of.clients.Call(ctx, node.RaftAddr, payload)
	switch {
	case errors.Is(err, peer.ErrNotSent):
		return nil, fmt.Errorf("node %q cannot be reached: %w", node.ID, err)
	case err != nil:
		return nil, limiter.ErrUnknownOutcome
	}
	return answer, calls.OutcomeOf(status, answer)
}

// mayRemove returns an error if the group would not decide without the source, because too many other voters are down,
// or if it would have too few replicas.
func (m *moving) mayRemove(source *limiter.Member) error {
	stays := func(of *limiter.Member) bool { return of.Voter && of != source }
	voters := m.t.Count(stays)
	left := m.t.Count(func(of *limiter.Member) bool {
		return stays(of) && of.Up && up(memberAt(m.first, of.RaftAddr))
	})
	switch {
	case source.Voter && voters < m.of.replicas:
		return fmt.Errorf("group %d would have %d replicas, and shall have %d: give it another one first, with - as "+
			"the node that gives", m.group, voters, m.of.replicas)
	case left <= voters/2:
		return fmt.Errorf("group %d would have %d voters of which %d are up: a majority must be up", m.group, voters,
			left)
	}
	return nil
}

// remove takes the replica from the source. A node that loses its vote in the first group goes on to follow it.
func (m *moving) remove(source *limiter.Member) error {
	if m.group == 0 {
		return m.of.nodes[0].Load().Demote(source.ID)
	}
	if m.from.Up {
		_, err := m.tell(m.from, calls.Rest)
		// It rests already, has just gone down, or hangs.
		if err != nil && !errors.Is(err, limiter.ErrTryAgain) && !errors.Is(err, peer.ErrNotSent) &&
			!errors.Is(err, limiter.ErrUnknownOutcome) {
			return err
		}
	}
	return m.g.ReleaseReplica(source.ID)
}
