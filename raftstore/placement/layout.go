package placement

import (
	"math"
	"slices"
)

// layout is the placement of groups on nodes, which are numbered in the order of their ids.
type layout struct {
	zone   []int   // the number of each node's zone
	groups [][]int // the members of each group
	load   []int   // how many replicas each node has
}

func newLayout(nodes []Node, groups int) *layout {
	l := &layout{zone: make([]int, len(nodes)), groups: make([][]int, groups), load: make([]int, len(nodes))}
	for i, n := range nodes {
		l.zone[i] = slices.IndexFunc(nodes, func(first Node) bool { return first.Zone == n.Zone })
	}
	return l
}

func (l *layout) add(g, node int) {
	l.groups[g] = append(l.groups[g], node)
	l.load[node]++
}

func (l *layout) replace(g, from, to int) {
	l.groups[g][slices.Index(l.groups[g], from)] = to
	l.load[from]--
	l.load[to]++
}

// inZone returns how many replicas of a group are in a zone, that of the node without apart.
func (l *layout) inZone(g, zone, without int) (n int) {
	for _, i := range l.groups[g] {
		if l.zone[i] == zone && i != without {
			n++
		}
	}
	return n
}

// sum adds up the values of the members of a group.
func (l *layout) sum(values []int, g int) (sum int) {
	for _, i := range l.groups[g] {
		sum += values[i]
	}
	return sum
}

// best returns the node that should get another replica of a group, or the one that the node without has; or none. It
// is a node of the zone that has the fewest of them, and there the one with the least cost.
func (l *layout) best(g, without int, cost func(node int) []int) int {
	return least(len(l.zone), func(i int) []int {
		if slices.Contains(l.groups[g], i) {
			return nil
		}
		c := cost(i)
		if c == nil {
			return nil
		}
		return append([]int{l.inZone(g, l.zone[i], without)}, c...)
	})
}

// can reports whether a replica of a group can be moved between two nodes without a loss of spread over the zones.
func (l *layout) can(g, from, to int) bool {
	a, b := l.zone[from], l.zone[to]
	return !slices.Contains(l.groups[g], to) && (a == b || l.inZone(g, b, none) < l.inZone(g, a, none))
}

// level evens out the numbers of replicas. pick chooses which of the groups on a node gives its replica to another node,
// by its place in the list, or none. move moves a replica. ends are the first and the last node of the path that the
// move is a step of, and had is how many replicas they had.
func (l *layout) level(pick func(of []int, from, to int) int, move func(g, from, to int, ends, had [2]int)) {
	level(l.load, func(a int) []int {
		var to []int
		of := l.of(a)
		for b := range l.zone {
			if pick(of, a, b) != none {
				to = append(to, b)
			}
		}
		return to
	}, func(path []int) bool {
		var groups []int // one for each step
		for i, from := range path[:len(path)-1] {
			of := slices.DeleteFunc(l.of(from), func(g int) bool { return slices.Contains(groups, g) })
			g := pick(of, from, path[i+1])
			if g == none {
				return false
			}
			groups = append(groups, of[g])
		}
		ends := [2]int{path[0], path[len(path)-1]}
		had := [2]int{l.load[ends[0]], l.load[ends[1]]}
		for i, g := range groups {
			move(g, path[i], path[i+1], ends, had)
		}
		return true
	})
}

// of returns the groups that have a replica on a node.
func (l *layout) of(node int) (groups []int) {
	for g, members := range l.groups {
		if slices.Contains(members, node) {
			groups = append(groups, g)
		}
	}
	return groups
}

// level evens out load by moving one unit after the other from a node that has more to one that has less by two or
// more, until no path leads from one to the other. next returns the nodes that can take a unit of a node; move moves
// one along a path and adapts load, or reports false. The shortest path costs the fewest moves.
func level(load []int, next func(node int) []int, move func(path []int) bool) {
	for moved := true; moved; {
		moved = false
		sources := make([]int, len(load))
		for i := range sources {
			sources[i] = i
		}
		slices.SortStableFunc(sources, func(a, b int) int { return load[b] - load[a] })
		// A node that was reached in vain before leads nowhere now: the sources before it had at least as much.
		before := make([]int, len(load)) // the node before this one on the path, counted from 1; 0: not reached
		for _, a := range sources {
			if load[a] < slices.Min(load)+2 {
				break
			}
			if before[a] == 0 {
				if path := search(load, a, before, next); path != nil && move(path) {
					moved = true
					break
				}
			}
		}
	}
}

// search returns the shortest path from a node to one that has less by two or more, or nil.
func search(load []int, a int, before []int, next func(node int) []int) []int {
	before[a] = a + 1
	for layer := []int{a}; len(layer) > 0; {
		var reached []int
		for _, from := range layer {
			for _, to := range next(from) {
				if before[to] == 0 {
					before[to] = from + 1
					reached = append(reached, to)
				}
			}
		}
		if i := least(len(reached), func(i int) []int { return []int{load[reached[i]]} }); i >= 0 &&
			load[reached[i]] <= load[a]-2 {
			path := []int{reached[i]}
			for path[0] != a {
				path = slices.Insert(path, 0, before[path[0]]-1)
			}
			return path
		}
		layer = reached
	}
	return nil
}

// none is no node.
const none = -1

// least returns the number below n with the least cost, compared from its first part on, or none. A nil cost excludes a
// number.
func least(n int, cost func(i int) []int) int {
	found, lowest := none, []int{math.MaxInt}
	for i := range n {
		if c := cost(i); c != nil && slices.Compare(c, lowest) < 0 {
			found, lowest = i, c
		}
	}
	return found
}

func square(n int) [][]int {
	rows := make([][]int, n)
	for i := range rows {
		rows[i] = make([]int, n)
	}
	return rows
}
