package host

// boundSlack is the divisor for the part of a memory bound by which nodes may differ without a warning. Machines of
// one kind have slightly different memory sizes.
const boundSlack = 16

// compareBounds warns about a member with another memory bound, once for each bound. The state stays the same on all
// nodes, because the leader decides what is evicted. But another leader evicts at another bound.
func (one *Peer) compareBounds(g *Group, theirs int64) {
	if one.warned = one.warned && one.bound == theirs; one.warned || sameBound(theirs, g.Options.Table.MaxMemoryBytes) {
		return
	}
	one.bound, one.warned = theirs, true
	g.Log.Warn("nodes have different memory bounds, and the leader evicts limiters at its own bound for all nodes; "+
		"give every node the same --max-memory",
		"node", one.ID, "bytes", theirs, "here", g.Options.Table.MaxMemoryBytes)
}

// sameBound reports whether two bounds, 0 for none, are about the same.
func sameBound(a, b int64) bool {
	low, high := min(a, b), max(a, b)
	return low == high || low > 0 && high-low <= high/boundSlack
}
