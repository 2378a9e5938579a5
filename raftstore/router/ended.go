package router

import (
	"fmt"
	"iter"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore/internal/away"
)

// replica is what this node has of a group: the group, or the reason why it has ended here, or the way to it. Other
// nodes have a group that has ended here or is away.
type replica struct {
	live Group       // nil: it has ended, or is away
	away *away.Group // nil: other nodes are not asked
	why  error
	last limiter.Group // as the node last knew the group, without a leader
}

// group returns a group, or the error of a group that has ended.
func (r *Router) group(number int) (Group, error) {
	if g := r.all()[number].live; g != nil {
		return g, nil
	}
	if m := r.all()[number]; m.why == nil && m.away != nil {
		return nil, fmt.Errorf("%w: group %d has no replica on this node: send the command to another node",
			limiter.ErrClusterDown, number)
	}
	return nil, fmt.Errorf("%w: group %d has ended on this node: send the command to another node",
		limiter.ErrClusterDown, number)
}

// reachable is a group, wherever its replicas are.
type reachable interface {
	Decide(ops []engine.Op, out []engine.Decision) error
	DecideAtomic(ops []engine.Op, out []engine.Decision) error
	Clear() error
	ClearDatabase(database int) error
	Advance(d time.Duration) bool
	Topology() *limiter.Topology
	ReadIndex() error
	Backup() (*limiter.Backup, error)
	AddNode(id, raftAddr string) error
	RemoveNode(id string) error
	ReleaseReplica(id string) error
	TransferLeadership(to string) error
}

// at returns a group, wherever its replicas are.
func (r *Router) at(number int) (reachable, error) {
	m := r.all()[number]
	if m.live == nil && m.away != nil {
		return m.away, nil
	}
	return r.group(number)
}

// reach calls a group, wherever its replicas are.
func (r *Router) reach(number int, call func(reachable) error) error {
	g, err := r.at(number)
	if err != nil {
		return err
	}
	return call(g)
}

// live visits the groups that have not ended, with their numbers. There is at least one, because the process of a node
// ends with the last group.
func (r *Router) live() iter.Seq2[int, Group] {
	return func(visit func(int, Group) bool) {
		for i, m := range r.all() {
			if m.live != nil && !visit(i, m.live) {
				return
			}
		}
	}
}

// base returns the first group that has not ended. It answers for the nodes, the policies and the time.
func (r *Router) base() Group {
	for _, m := range r.all() {
		if m.live != nil {
			return m.live
		}
	}
	panic("router: every group has ended")
}

// lastKnown describes a group that ends.
func (r *Router) lastKnown(group int, why error) limiter.Group {
	t := r.Topology()
	g := t.Groups[group]
	if g.Leader != "" && g.Leader != t.Self {
		g.LastLeader = g.Leader
	}
	g.Leader, g.Ended = "", why.Error()
	return g
}
