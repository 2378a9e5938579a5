package placement

import "slices"

// layout is a state that changes. Its nodes are in order of their ids.
type layout struct {
	State
	node map[string]Node  // by id
	load map[string]int   // the number of replicas on each node
	used map[string]int64 // the bytes that they take, with those that are moved away
}

func newLayout(s State) *layout {
	l := &layout{State{inOrder(s.Nodes), slices.Clone(s.Groups), s.Replicas},
		map[string]Node{}, map[string]int{}, map[string]int64{}}
	if l.Replicas <= 0 || l.Replicas > len(l.Nodes) {
		l.Replicas = len(l.Nodes)
	}
	for _, n := range l.Nodes {
		l.node[n.ID] = n
	}
	for _, g := range l.Groups {
		for _, id := range g.Members {
			l.load[id]++
			l.used[id] += g.Bytes
		}
	}
	return l
}

// move moves a replica of a group, or adds one if from is "".
func (l *layout) move(g int, from, to string) {
	members := slices.Clone(l.Groups[g].Members)
	if i := slices.Index(members, from); i >= 0 {
		members[i] = to
	} else {
		members = append(members, to)
	}
	l.Groups[g].Members = members
	l.load[from]--
	l.load[to]++
	l.used[to] += l.Groups[g].Bytes
}

func (l *layout) has(g int, id string) bool { return slices.Contains(l.Groups[g].Members, id) }

// inZone returns how many replicas of a group are in the zone of a node, without that of another node.
func (l *layout) inZone(g int, id, without string) (n int) {
	for _, m := range l.Groups[g].Members {
		if m != without && l.node[m].Zone == l.node[id].Zone {
			n++
		}
	}
	return n
}

// best returns the node that should get another replica of a group, or the one that the node from has; or "". It is in
// the zone that has the fewest, then the node with the fewest replicas, then the one with the least cost. A node whose
// cost is nil gets none.
func (l *layout) best(g int, from string, cost func(n Node) []int) string {
	var best string
	var least []int
	for _, n := range l.Nodes {
		c := cost(n)
		if c == nil || l.has(g, n.ID) {
			continue
		}
		c = append([]int{l.inZone(g, n.ID, from), l.load[n.ID]}, c...)
		if best == "" || slices.Compare(c, least) < 0 {
			best, least = n.ID, c
		}
	}
	return best
}

// uneven returns a move that makes the numbers of replicas more even without a loss of spread over the zones: from one
// of the nodes that have most to one of those that have least. may tells whether it may be made. from is "" if no
// such move is left.
func (l *layout) uneven(may func(g int, from, to string) bool) (g int, from, to string) {
	nodes := slices.Clone(l.Nodes)
	slices.SortStableFunc(nodes, func(a, b Node) int { return l.load[a.ID] - l.load[b.ID] })
	for _, a := range slices.Backward(nodes) {
		var of []int
		for g := range l.Groups {
			if l.has(g, a.ID) {
				of = append(of, g)
			}
		}
		for _, b := range nodes {
			for _, g := range of {
				if l.load[b.ID] <= l.load[a.ID]-2 && !l.has(g, b.ID) && may(g, a.ID, b.ID) &&
					l.inZone(g, b.ID, a.ID) < l.inZone(g, a.ID, "") {
					return g, a.ID, b.ID
				}
			}
		}
	}
	return 0, "", ""
}
