package router

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

// Joined reports whether all groups of the node have been in a committed configuration.
func (n *Node) Joined() bool {
	for i := range n.nodes {
		if !n.nodes[i].Load().Joined() {
			return false
		}
	}
	return true
}
