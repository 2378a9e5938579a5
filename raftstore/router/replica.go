package router

import (
	"slices"
	"sync"
	"time"

	"github.com/weir-project/weir/engine/hashslot"
	"github.com/weir-project/weir/limiter"
)

// viewAge is how long Topology returns the same description. Every pipeline may call it, and a description asks all
// groups.
const viewAge = 10 * time.Millisecond

// viewCache holds the last description of the cluster.
type viewCache struct {
	mu   sync.Mutex
	made time.Time
	last *limiter.Topology
}

// Topology describes the cluster; see limiter.Replica. The description is at most viewAge old.
func (r *Router) Topology() *limiter.Topology {
	c := &r.views
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == nil || time.Since(c.made) >= viewAge {
		c.last, c.made = r.view(), time.Now()
	}
	return c.last
}

func (r *Router) view() *limiter.Topology {
	t := *r.all()[0].Topology()
	t.Groups = make([]limiter.Group, len(r.all()))
	for i, g := range r.all() {
		v := g.Topology()
		t.Groups[i] = limiter.Group{
			Slots: hashslot.OfGroup(i, len(r.all())), Leader: idIn(&t, v, v.Leader),
			LastLeader: idIn(&t, v, v.LastLeader),
			Term:       v.Term, AppliedIndex: v.AppliedIndex, CommitIndex: v.CommitIndex,
		}
		t.Format = min(t.Format, v.Format)
	}
	return &t
}

// LeaderOf returns the leader of the group that owns a slot, by its id in the first group. A redirect asks it. By old
// descriptions, two nodes could redirect a client to each other.
func (r *Router) LeaderOf(slot uint16) string {
	v := r.all()[hashslot.Group(slot, len(r.all()))].Topology()
	return idIn(r.all()[0].Topology(), v, v.Leader)
}

// ReadIndex returns nil when this node has applied every entry of every group that was acknowledged before the call.
func (r *Router) ReadIndex() error {
	return first(r.forAll(func(_ int, g Group) error { return g.ReadIndex() }))
}

// first returns the first error that is not nil.
func first(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// StaleFor returns an upper bound of the age of the state of every group.
func (r *Router) StaleFor() (oldest time.Duration) {
	for _, g := range r.all() {
		oldest = max(oldest, g.StaleFor())
	}
	return oldest
}

// idIn returns the id that a group has for the node that another group calls id, or "" if it has none. A node has an
// incarnation in each group, so its ids may differ. Its inter-node address is the same.
func idIn(to, from *limiter.Topology, id string) string {
	if m := from.Member(id); m != nil {
		for i := range to.Nodes {
			if to.Nodes[i].RaftAddr == m.RaftAddr {
				return to.Nodes[i].ID
			}
		}
	}
	return ""
}

// AddNode adds a node to every group that lacks it, so it can be repeated after an error.
func (r *Router) AddNode(id, raftAddr string) error {
	added := false
	err := r.inTurn(func(g Group) error {
		if has(g.Topology(), raftAddr) {
			return nil
		}
		added = true
		return g.AddNode(id, raftAddr)
	})
	if err == nil && !added {
		return r.all()[0].AddNode(id, raftAddr) // which knows why not
	}
	return err
}

// RemoveNode removes a node from every group that has it, so it can be repeated after an error. id is the node's id in
// the first group that still has it.
func (r *Router) RemoveNode(id string) error {
	for _, of := range r.all() {
		t := of.Topology()
		m := t.Member(id)
		if m == nil {
			continue
		}
		return r.inTurn(func(g Group) error {
			if own := idIn(g.Topology(), t, id); own != "" {
				return g.RemoveNode(own)
			}
			return nil
		})
	}
	return r.all()[0].RemoveNode(id) // which knows why not
}

func has(t *limiter.Topology, raftAddr string) bool {
	return slices.ContainsFunc(t.Nodes, func(m limiter.Member) bool { return m.RaftAddr == raftAddr })
}

// TransferLeadership transfers the leadership of every group to a node. With "" it transfers the leadership of the
// groups that this node leads, to any other node.
func (r *Router) TransferLeadership(to string) error {
	first := r.all()[0].Topology()
	if to != "" && first.Member(to) == nil {
		return r.all()[0].TransferLeadership(to) // which knows why not
	}
	return r.inTurn(func(g Group) error {
		t := g.Topology()
		own := idIn(t, first, to)
		if to != "" && t.Leader == own || to == "" && !t.Leads() {
			return nil
		}
		return g.TransferLeadership(own)
	})
}

// Snapshot takes a snapshot of one group after the other.
func (r *Router) Snapshot() error { return r.inTurn(func(g Group) error { return g.Snapshot() }) }

// inTurn calls each with one group after the other, until an error.
func (r *Router) inTurn(each func(Group) error) error {
	for _, g := range r.all() {
		if err := each(g); err != nil {
			return err
		}
	}
	return nil
}

// Digest returns a hash of the last applied log indexes of all groups, and a hash of their states. Both are equal on
// every node once all nodes have applied the same entries of every group.
func (r *Router) Digest() (index, hash uint64) {
	const offset, prime = 14695981039346656037, 1099511628211 // of FNV-1a
	index, hash = offset, offset
	for _, g := range r.all() {
		at, state := g.Digest()
		index, hash = (index^at)*prime, (hash^state)*prime
	}
	return index, hash
}
