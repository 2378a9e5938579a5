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
	t := *r.groups[0].Topology()
	t.Groups = make([]limiter.Group, len(r.groups))
	for i, g := range r.groups {
		v := g.Topology()
		t.Groups[i] = limiter.Group{
			Slots: hashslot.OfGroup(i, len(r.groups)), Leader: v.Leader, LastLeader: v.LastLeader,
			Term: v.Term, AppliedIndex: v.AppliedIndex, CommitIndex: v.CommitIndex,
		}
		t.Format = min(t.Format, v.Format)
	}
	return &t
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
	for _, g := range r.groups {
		oldest = max(oldest, g.StaleFor())
	}
	return oldest
}

// AddNode adds a node to every group. It can be repeated after an error: groups that have the node are passed over.
func (r *Router) AddNode(id, raftAddr string) error {
	return r.inTurn(func(g Group) error {
		if g.Topology().Member(id) != nil && !r.everyGroupHas(id) {
			return nil
		}
		return g.AddNode(id, raftAddr)
	})
}

// RemoveNode removes a node from every group. It can be repeated after an error.
func (r *Router) RemoveNode(id string) error {
	return r.inTurn(func(g Group) error {
		if g.Topology().Member(id) == nil && r.someGroupHas(id) {
			return nil
		}
		return g.RemoveNode(id)
	})
}

func (r *Router) everyGroupHas(id string) bool {
	return !slices.ContainsFunc(r.groups, func(g Group) bool { return g.Topology().Member(id) == nil })
}

func (r *Router) someGroupHas(id string) bool {
	return slices.ContainsFunc(r.groups, func(g Group) bool { return g.Topology().Member(id) != nil })
}

// TransferLeadership transfers the leadership of the groups that this node leads to a node, or with "" to any node. With
// a node's id it transfers the leadership of every other group, too.
func (r *Router) TransferLeadership(to string) error {
	return r.inTurn(func(g Group) error {
		t := g.Topology()
		if t.Leader == to || to == "" && !t.Leads() {
			return nil
		}
		return g.TransferLeadership(to)
	})
}

// Snapshot takes a snapshot of one group after the other.
func (r *Router) Snapshot() error { return r.inTurn(func(g Group) error { return g.Snapshot() }) }

// inTurn calls each with one group after the other, until an error.
func (r *Router) inTurn(each func(Group) error) error {
	for _, g := range r.groups {
		if err := each(g); err != nil {
			return err
		}
	}
	return nil
}

// Digest returns the sum of the last applied log indexes, and a hash of the states of all groups. Both are equal on
// every node once all nodes have applied the same entries of every group.
func (r *Router) Digest() (index, hash uint64) {
	const prime = 1099511628211 // of FNV-1a, so that the order of the groups counts
	for _, g := range r.groups {
		at, state := g.Digest()
		index, hash = index+at, (hash^state)*prime
	}
	return index, hash
}
