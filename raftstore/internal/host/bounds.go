package host

// boundSlack is the share of a memory bound by which nodes may differ without a
// warning: machines of one kind have not quite the same memory.
const boundSlack = 16

// compareBounds warns, once for each bound, of a member that bounds its memory in
// another way. The state stays the same everywhere, for the one that leads decides
// what is forgotten, but with each leader it is another share.
func (one *Peer) compareBounds(h *Host, theirs int64) {
	if one.warned = one.warned && one.bound == theirs; one.warned || sameBound(theirs, h.MaxMemory) {
		return
	}
	one.bound, one.warned = theirs, true
	h.Log.Warn("nodes bound their memory differently: whichever leads forgets at its own bound, for all; give every "+
		"node the same --max-memory",
		"node", one.ID, "bytes", theirs, "here", h.MaxMemory)
}

// sameBound reports whether two bounds, 0 for none, are about the same.
func sameBound(a, b int64) bool {
	low, high := min(a, b), max(a, b)
	return low == high || low > 0 && high-low <= high/boundSlack
}
