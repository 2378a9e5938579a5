package placement

import (
	"fmt"
	"hash/fnv"
	"slices"
)

// State is a cluster whose replicas can be moved.
type State struct {
	Nodes    []Node // in any order
	Groups   []Group
	Replicas int // that each group shall have; 0: one on every node
}

// Group is one Raft group.
type Group struct {
	Members []string // ids of the nodes that have a replica, the preferred leader first; none: they are unknown
	Bytes   int64    // of one replica; 0: unknown
}

// Hash returns a fingerprint of the nodes, their zones and the members of the groups in hexadecimal. It depends neither
// on the order of nodes and members, nor on which nodes are up, nor on bytes: these change without a move.
func (s State) Hash() string {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d", s.Replicas)
	for _, n := range inOrder(s.Nodes) {
		fmt.Fprintf(h, "\n%q %q", n.ID, n.Zone)
	}
	for _, g := range s.Groups {
		fmt.Fprintf(h, "\n%q", slices.Sorted(slices.Values(g.Members)))
	}
	return fmt.Sprintf("%016x", h.Sum64())
}

// After returns the state after moves.
func (s State) After(moves []Move) State {
	s.Groups = slices.Clone(s.Groups)
	for _, m := range moves {
		g := &s.Groups[m.Group]
		g.Members = slices.Clone(g.Members)
		if i := slices.Index(g.Members, m.From); i >= 0 {
			g.Members[i] = m.To
		} else {
			g.Members = append(g.Members, m.To)
		}
	}
	return s
}
