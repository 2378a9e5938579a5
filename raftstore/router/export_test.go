package router

import "github.com/weir-project/weir/engine"

// LiveLogBytes returns about the size of the live records in the shared log.
func (n *Node) LiveLogBytes() int64 {
	_, live := n.host.SharedLog.Size()
	return live
}

// DeadLogBytes returns about the size of the other records in the shared log.
func (n *Node) DeadLogBytes() int64 {
	all, live := n.host.SharedLog.Size()
	return all - live
}

// Syncs returns the number of syncs of the logs for entries, since the start.
func (n *Node) Syncs() uint64 { return n.host.SharedLog.Appends() }

// TopHere reads the heaviest keys of this node's replica of a group for another node.
func (n *Node) TopHere(group int, v engine.Verdict) error {
	_, err := n.readHere(n.nodes[group].Load(), &question{What: askTop, Verdict: v, Count: 1})
	return err
}

// Joined reports whether all groups of the node have been in a committed configuration.
func (n *Node) Joined() bool {
	for i := range n.nodes {
		if !n.nodes[i].Load().Joined() {
			return false
		}
	}
	return true
}
