package placement

import (
	"cmp"
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

// Node is a node that can have replicas of groups. Found reads the first two fields.
type Node struct {
	ID     string
	Zone   string // nodes of a zone fail together; "": a zone that all nodes without one share
	Up     bool
	Memory int64 // bytes that its replicas may take; 0: unknown
}

// Group is one Raft group.
type Group struct {
	Members []string // ids of the nodes that have a replica; none: they are unknown
	New     []string // those of them that do not vote yet
	Bytes   int64    // of one replica; 0: unknown
}

// Votes returns how many members of a group vote, and how many of these are on nodes that are up. The group decides
// while these are a majority.
func (s State) Votes(g int) (voters, up int) {
	for _, id := range s.Groups[g].Members {
		if slices.Contains(s.Groups[g].New, id) {
			continue
		}
		voters++
		if slices.ContainsFunc(s.Nodes, func(n Node) bool { return n.ID == id && n.Up }) {
			up++
		}
	}
	return voters, up
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

func inOrder(nodes []Node) []Node {
	return slices.SortedFunc(slices.Values(nodes), func(a, b Node) int { return cmp.Compare(a.ID, b.ID) })
}
