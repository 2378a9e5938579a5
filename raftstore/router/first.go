package router

import (
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore"
	"github.com/weir-project/weir/raftstore/internal/host"
)

// firstGroup is the first group of a node as its other groups see it. It knows nothing once the group has ended here.
type firstGroup struct {
	of   *Node
	node *raftstore.Node // nil: the group had ended before the start
}

var _ host.FirstGroup = firstGroup{}

func (f firstGroup) runs() bool { return f.node != nil && !f.of.ending[0].Load() }

func (f firstGroup) Joined() bool { return f.runs() && f.node.Joined() }

func (f firstGroup) Members() []string {
	if !f.runs() {
		return nil
	}
	return f.node.Members()
}

func (f firstGroup) Addrs() []string {
	if !f.runs() {
		return nil
	}
	return f.node.Addrs()
}

func (f firstGroup) Belongs(id string) error {
	if !f.runs() {
		return limiter.ErrClusterDown
	}
	return f.node.Belongs(id)
}
