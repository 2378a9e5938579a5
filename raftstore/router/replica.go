package router

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-project/weir/engine/hashslot"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore/internal/away"
	"github.com/weir-project/weir/raftstore/internal/identity"
)

// viewAge is how long Topology returns the same description. Every pipeline may call Topology, and a new description
// asks all groups.
const viewAge = 10 * time.Millisecond

// viewCache holds the last description of the cluster.
type viewCache struct {
	mu   sync.Mutex
	made time.Time
	last *limiter.Topology
}

// Topology describes the cluster; see limiter.Replica. The description of several groups is at most viewAge old.
func (r *Router) Topology() *limiter.Topology {
	if r.only() != nil {
		return r.view()
	}
	c := &r.views
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == nil || time.Since(c.made) >= viewAge {
		c.last, c.made = r.view(), time.Now()
	}
	return c.last
}

func (r *Router) view() *limiter.Topology {
	one := r.base()
	base := one.Topology()
	t := *base
	t.Nodes = slices.Clone(t.Nodes)
	t.Groups = make([]limiter.Group, len(r.all()))
	for i, m := range r.all() {
		g, err := r.at(i)
		if err != nil {
			t.Groups[i] = m.last
			continue
		}
		v := base
		if g != one {
			v = g.Topology()
		}
		t.Groups[i] = limiter.Group{
			Slots: hashslot.OfGroup(i, len(r.all())), Leader: idIn(base, v, v.Leader),
			LastLeader: idIn(base, v, v.LastLeader),
			Term:       v.Term, AppliedIndex: v.AppliedIndex, CommitIndex: v.CommitIndex, Away: m.live == nil,
		}
		if m.why != nil {
			t.Groups[i].Ended = m.why.Error()
		}
		if r.replicas > 0 {
			t.Groups[i].Members = membersOf(base, v, i == 0)
		} else if g != one {
			merge(&t, v)
		}
		if m.live != nil {
			t.Format = min(t.Format, v.Format)
		}
	}
	if t.Replicas = r.replicas; t.Replicas > 0 {
		countVotes(&t)
	}
	return &t
}

// membersOf returns the members of a group with their ids in the first group. Nodes that only follow the first group
// are not members.
func membersOf(first, of *limiter.Topology, isFirst bool) (members []limiter.GroupMember) {
	for _, m := range of.Nodes {
		if id := idIn(first, of, m.ID); id != "" && (m.Voter || !isFirst) {
			members = append(members, limiter.GroupMember{
				ID: id, Voter: m.Voter, LagEntries: m.LagEntries, Silent: !m.Up,
			})
		}
	}
	slices.SortFunc(members, func(a, b limiter.GroupMember) int { return strings.Compare(a.ID, b.ID) })
	return members
}

// countVotes sets which nodes vote in all groups of which they have a replica, and their greatest lag.
func countVotes(t *limiter.Topology) {
	for i := range t.Nodes {
		m := &t.Nodes[i]
		has, votes := 0, 0
		for _, g := range t.Groups {
			for _, of := range g.Members {
				if of.ID != m.ID {
					continue
				}
				has, m.LagEntries = has+1, max(m.LagEntries, of.LagEntries)
				if of.Voter {
					votes++
				}
			}
		}
		m.Voter = has > 0 && votes == has
	}
}

// merge merges the nodes of another group into t. A node counts as a voter only if it votes in both groups. Its lag is
// its greatest lag in any group. A node that joins or leaves is only in some of the groups for a while.
func merge(t, of *limiter.Topology) {
	for i := range t.Nodes {
		m := &t.Nodes[i]
		at := slices.IndexFunc(of.Nodes, func(o limiter.Member) bool {
			return o.ID == m.ID || o.RaftAddr == m.RaftAddr
		})
		if at < 0 {
			m.Voter = false
			continue
		}
		m.Voter = m.Voter && of.Nodes[at].Voter
		m.LagEntries = max(m.LagEntries, of.Nodes[at].LagEntries)
	}
	for _, m := range of.Nodes {
		if t.Member(m.ID) == nil && memberAt(t, m.RaftAddr) == nil {
			m.Voter = false
			t.Nodes = append(t.Nodes, m)
			slices.SortFunc(t.Nodes, func(a, b limiter.Member) int { return strings.Compare(a.ID, b.ID) })
		}
	}
}

// LeaderOf returns the leader of the group that owns a slot, by its id in the first group. Redirects use LeaderOf and
// not Topology. With descriptions that are up to viewAge old, two nodes could redirect a client to each other.
func (r *Router) LeaderOf(slot uint16) string {
	g, err := r.at(r.ofSlot(slot))
	base := r.base()
	switch {
	case err != nil:
		return ""
	case g == base:
		return base.Topology().Leader
	}
	t := g.Topology()
	return idIn(base.Topology(), t, t.Leader)
}

// ReadIndex returns nil when this node has applied every entry of every group that was acknowledged before the call.
func (r *Router) ReadIndex() error {
	return cmp.Or(r.forAll(func(_ int, g reachable) error { return g.ReadIndex() })...)
}

// ofSlot returns the number of the group that owns a slot.
func (r *Router) ofSlot(slot uint16) int { return hashslot.Group(slot, len(r.all())) }

// ReadIndexOf returns nil when this node has applied every entry of the slot's group that was acknowledged before the
// call.
func (r *Router) ReadIndexOf(slot uint16) error {
	return r.reach(r.ofSlot(slot), reachable.ReadIndex)
}

// StaleForOf returns an upper bound of the age of the state of the slot's group.
func (r *Router) StaleForOf(slot uint16) time.Duration { return r.staleFor(r.ofSlot(slot)) }

func (r *Router) staleFor(group int) time.Duration {
	switch m := r.all()[group]; {
	case m.live != nil:
		return m.live.StaleFor()
	case m.away != nil:
		return 0 // another node makes the read linearizable
	}
	return limiter.UnknownAge
}

// StaleFor returns an upper bound of the age of the state of every group.
func (r *Router) StaleFor() (oldest time.Duration) {
	for i := range r.all() {
		oldest = max(oldest, r.staleFor(i))
	}
	return oldest
}

// idIn translates the id of a node in the group from to the id of the same node in the group to. It returns "" if
// either group lacks the node. A node has an incarnation in each group, so its ids may differ. Its inter-node address
// is the same.
func idIn(to, from *limiter.Topology, id string) string {
	if to == from {
		return id
	}
	if m := from.Member(id); m != nil {
		if of := memberAt(to, m.RaftAddr); of != nil {
			return of.ID
		}
	}
	return ""
}

// AddNode adds a node to every group that lacks it, so it can be repeated after an error. A node joins the first group
// first, so no group gets the node if the first one does not. If groups are on a part of the nodes, the node only
// follows the first group until a replica is moved to it.
func (r *Router) AddNode(id, raftAddr string) error {
	if r.replicas > 0 {
		return r.reach(0, func(g reachable) error { return g.AddNode(id, raftAddr) })
	}
	added := false
	var refused error
	err := r.inTurn(func(group int) error {
		if refused != nil {
			return refused
		}
		g, t, err := r.current(group)
		if err == nil && memberAt(t, raftAddr) == nil {
			added = true
			err = g.AddNode(id, raftAddr)
		}
		if group == 0 {
			refused = err
		}
		return err
	})
	if err == nil && !added {
		return r.reach(0, func(g reachable) error { return g.AddNode(id, raftAddr) }) // which knows why not
	}
	return err
}

// current returns a group and its members as they are now. It begins with a ReadIndex, because this node may lag, or
// may not have joined the group yet. Without the look, Topology would not know a node that joined in the last 250 ms.
func (r *Router) current(group int) (reachable, *limiter.Topology, error) {
	if a := r.all()[group].away; a != nil && r.Group(group) == nil {
		t, err := a.Current()
		return a, t, err
	}
	g, err := r.group(group)
	if err != nil {
		return nil, nil, err
	}
	err = g.ReadIndex()
	g.LookAtMembers()
	return g, g.Topology(), err
}

// RemoveNode removes a node from every group that has it, and from the first group last. So the node keeps its id in
// the first group until no other group has it. The call can then be repeated after an error, and a node with an empty
// directory cannot rejoin too early. If a delayed join comes into another group meanwhile, the leader of that group
// removes the node once the first group has. id is the node's id in the first group.
func (r *Router) RemoveNode(id string) error {
	g, first, err := r.current(0)
	if err == nil {
		err = r.mayLeave(id)
	}
	if err != nil {
		return err
	}
	left, err := r.removeFromOthers(first, id)
	if err != nil || left && first.Member(id) == nil {
		return err // or it is done, because the first group does not have the node any more
	}
	return g.RemoveNode(id)
}

// mayLeave returns an error for a node that is up and has replicas of groups that other nodes lack: its groups would
// have fewer than they shall have.
func (r *Router) mayLeave(id string) error {
	t := r.Topology()
	has := t.ReplicasOn(id)
	if r.replicas == 0 || has <= 0 || !up(t.Member(id)) {
		return nil
	}
	return fmt.Errorf("node %q is up and has replicas of %d groups: move them with weir cluster drain %[1]s, or stop "+
		"the node first", id, has)
}

// removeFromOthers removes a node from all groups but the first, and reports whether some group had it.
func (r *Router) removeFromOthers(first *limiter.Topology, id string) (left bool, err error) {
	err = r.inTurn(func(group int) error {
		if group == 0 {
			return errLast
		}
		removed, err := r.removeFrom(group, first, id)
		left = left || removed
		return err
	})
	return left, err
}

// RemoveFromGroup removes a node from one group alone; see limiter.Replica.
func (r *Router) RemoveFromGroup(id string, group int) error {
	if groups := len(r.all()); group < 0 || group >= groups {
		return fmt.Errorf("the cluster has %d groups", groups)
	}
	_, first, err := r.current(0)
	if err != nil {
		return err
	}
	removed, err := r.removeFrom(group, first, id)
	if err == nil && !removed {
		return fmt.Errorf("no node %q in group %d", id, group)
	}
	return err
}

// removeFrom removes a node from a group, unless the group lacks it. The group may have another id for the node.
func (r *Router) removeFrom(group int, first *limiter.Topology, id string) (removed bool, err error) {
	g, t, err := r.current(group)
	if err != nil {
		return false, err
	}
	if t.Member(id) == nil && first.Member(id) != nil {
		id = idIn(t, first, id)
	}
	if t.Member(id) == nil {
		return false, nil
	}
	if err = g.RemoveNode(id); err == nil {
		return true, nil
	}
	// Another call may have removed it meanwhile, or the answer to this one was lost.
	if _, t, e := r.current(group); e == nil && t.Member(id) == nil {
		return true, nil
	}
	return false, err
}

// memberAt returns the node with an inter-node address, or nil.
func memberAt(t *limiter.Topology, addr string) *limiter.Member {
	for i := range t.Nodes {
		if t.Nodes[i].RaftAddr == addr {
			return &t.Nodes[i]
		}
	}
	return nil
}

// TransferLeadership transfers the leadership of every group to a node, if replicas are on a part of the nodes of every
// group in which the node votes. If to is "", the groups that this node leads get any other node as their leader.
func (r *Router) TransferLeadership(to string) error {
	if g := r.only(); g != nil {
		return g.TransferLeadership(to)
	}
	base := r.base()
	if to = called(base.Topology(), to); to != "" && base.Topology().Member(to) == nil {
		return base.TransferLeadership(to) // which knows why not
	}
	all := r.Topology()
	gets := func(g limiter.Group) bool { return to == "" || all.Serves(&g, to) }
	if !slices.ContainsFunc(all.Groups, gets) {
		return fmt.Errorf("node %q has no replica that votes", to)
	}
	return r.inTurn(func(group int) error {
		if g := r.Group(group); to == "" && (g == nil || !g.Topology().Leads()) {
			return nil
		}
		if !gets(r.Topology().Groups[group]) {
			return nil
		}
		return r.TransferGroup(group, to)
	})
}

// TransferGroup transfers the leadership of a group to a node; see limiter.Replica. to is the node's id in the first
// group.
func (r *Router) TransferGroup(group int, to string) error {
	if groups := len(r.all()); group >= groups {
		return fmt.Errorf("the cluster has %d groups", groups)
	}
	to = called(r.base().Topology(), to)
	return r.reach(group, func(g reachable) error {
		t := g.Topology()
		if a, ok := g.(*away.Group); ok { // a report may be a second old
			var err error
			if t, err = a.Current(); err != nil {
				return err
			}
		}
		own := cmp.Or(idIn(t, r.base().Topology(), to), to) // a group without the node refuses it
		if to != "" && t.Leader == own {
			return nil
		}
		return g.TransferLeadership(own)
	})
}

// called returns the id of the node that was started with an id: that of its present incarnation.
func called(t *limiter.Topology, given string) string {
	if t.Member(given) != nil {
		return given
	}
	for i := range t.Nodes {
		if identity.GivenID(t.Nodes[i].ID) == given {
			return t.Nodes[i].ID
		}
	}
	return given
}

// Snapshot takes a snapshot of every group.
func (r *Router) Snapshot() error {
	return r.inTurn(func(group int) error {
		if g := r.Group(group); g != nil {
			return g.Snapshot()
		}
		return nil
	})
}

// Digest describes the state of a group; see limiter.Replica.
func (r *Router) Digest(group int) (index, hash uint64) {
	if g := r.Group(group); g != nil {
		return g.Digest()
	}
	return 0, 0
}
