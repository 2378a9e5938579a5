package sim

import (
	"fmt"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore"
	"github.com/weir-project/weir/raftstore/router"
)

// replica is one Raft group as a node sees it.
type replica interface {
	Topology() *limiter.Topology
	Digest() (index, hash uint64)
	Shared() *engine.SharedItems // nil: the group has ended on the node
}

// groupOn is a group of a node by its number. It knows nothing once the group has ended on the node.
type groupOn struct {
	node   *router.Node
	number int
}

func (g groupOn) Topology() *limiter.Topology {
	if one := g.node.Group(g.number); one != nil {
		return one.Topology()
	}
	return &limiter.Topology{}
}

func (g groupOn) Digest() (index, hash uint64) { return g.node.Digest(g.number) }

func (g groupOn) Shared() *engine.SharedItems {
	if one := g.node.Group(g.number); one != nil {
		return one.Shared()
	}
	return nil
}

// openNode opens a node, and returns its groups. The Raft library panics if it cannot read its log, and openNode turns
// that into an error.
func openNode(o raftstore.Options) (n *router.Node, groups []replica, err error) {
	defer func() {
		if failure := recover(); failure != nil {
			n, err = nil, fmt.Errorf("panic: %v", failure)
		}
	}()
	opened, err := router.Open(o)
	if err != nil {
		return nil, nil, err
	}
	for i := range o.Groups {
		groups = append(groups, groupOn{opened, i})
	}
	return opened, groups, nil
}
