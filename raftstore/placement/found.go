package placement

import (
	"cmp"
	"slices"
)

// Node is a node that can have replicas of groups. Found reads the first two fields.
type Node struct {
	ID     string
	Zone   string // nodes of a zone fail together; "": a zone that all nodes without one share
	Up     bool
	Memory int64 // bytes that its replicas may take; 0: unknown
}

// Found returns for each group the ids of the nodes that have a replica of it when the cluster is founded, the
// preferred leader first. A group has as many replicas as replicas says, or one on every node if replicas is 0 or
// exceeds the number of nodes. The order of nodes does not matter. Their ids differ, and there is at least one.
//
// The groups that share a node have their other replicas on different nodes, as far as possible. So the work of a node
// that fails spreads over many others: the second node of a group leads it then.
func Found(nodes []Node, groups, replicas int) [][]string {
	nodes = inOrder(nodes)
	if replicas <= 0 || replicas > len(nodes) {
		replicas = len(nodes)
	}
	n := len(nodes)
	l := newLayout(nodes, groups)
	together, behind := square(n), square(n) // the groups that two nodes share, and those of them where one came first
	for g := range groups {
		turn := func(i int) int { return (i - g%n + n) % n }
		first := l.best(g, none, func(i int) []int { return []int{l.load[i], turn(i)} })
		l.add(g, first)
		for range replicas - 1 {
			l.add(g, l.best(g, none, func(i int) []int {
				return []int{l.load[i], behind[first][i], l.sum(together[i], g), turn(i)}
			}))
		}
		for _, a := range l.groups[g] {
			behind[first][a]++
			for _, b := range l.groups[g] {
				together[a][b]++
			}
		}
	}
	l.level(func(of []int, from, to int) int {
		return slices.IndexFunc(of, func(g int) bool { return l.can(g, from, to) })
	}, func(g, from, to int, _, _ [2]int) { l.replace(g, from, to) })
	l.order()
	placed := make([][]string, groups)
	for g, members := range l.groups {
		for _, i := range members {
			placed[g] = append(placed[g], nodes[i].ID)
		}
	}
	return placed
}

func inOrder(nodes []Node) []Node {
	return slices.SortedFunc(slices.Values(nodes), func(a, b Node) int { return cmp.Compare(a.ID, b.ID) })
}

// Leaders returns for each group the member that should lead it. groups has the ids of the members that can lead each
// group now, in order of preference. The leaders are even: no other choice of leaders lowers the greatest difference
// between the numbers of groups that two nodes lead. A group is led by its first member, unless that makes them uneven.
// The leader of a group without members is "".
func Leaders(groups [][]string) []string {
	var ids []string
	for _, members := range groups {
		ids = append(ids, members...)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	numbered := make([][]int, len(groups))
	for g, members := range groups {
		for _, id := range members {
			i, _ := slices.BinarySearch(ids, id)
			numbered[g] = append(numbered[g], i)
		}
	}
	all := make([]string, len(groups))
	for g, i := range leaders(numbered, make([]int, len(ids))) {
		if i >= 0 {
			all[g] = ids[i]
		}
	}
	return all
}

// leaders is Leaders for nodes with numbers, which lead other groups as well: led has how many. The leader of a group
// without members is none.
func leaders(groups [][]int, led []int) []int {
	leader := make([]int, len(groups))
	for g, members := range groups {
		leader[g] = none
		if len(members) > 0 {
			leader[g] = members[0]
			led[members[0]]++
		}
	}
	level(led, func(a int) []int {
		var to []int
		for g, i := range leader {
			if i == a {
				to = append(to, groups[g]...)
			}
		}
		return to
	}, func(path []int) bool {
		for i, a := range path[:len(path)-1] {
			g := 0
			for leader[g] != a || !slices.Contains(groups[g], path[i+1]) {
				g++
			}
			leader[g] = path[i+1]
		}
		led[path[0]]--
		led[path[len(path)-1]]++
		return true
	})
	return leader
}

// order puts the preferred leader of each group first, and second the one that leads if that node fails: as even as the
// members allow it, whichever node fails.
func (l *layout) order() {
	led := make([]int, len(l.zone))
	first := leaders(l.groups, led)
	for g, a := range first {
		swap(l.groups[g], a)
	}
	for a := range l.zone {
		var of []int // the groups that a leads
		var rest [][]int
		for g, leader := range first {
			if leader == a {
				of = append(of, g)
				rest = append(rest, l.groups[g][1:])
			}
		}
		for i, second := range leaders(rest, slices.Clone(led)) {
			if second >= 0 {
				swap(l.groups[of[i]][1:], second)
			}
		}
	}
}

// swap puts a member first, and the first one in its place.
func swap(members []int, first int) {
	i := slices.Index(members, first)
	members[0], members[i] = members[i], members[0]
}
