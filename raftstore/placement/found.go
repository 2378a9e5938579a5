package placement

import "slices"

// tries is how many placements Found compares. The first is nearly always as even as the zones allow.
const tries = 8

// Found returns for each group the ids of the nodes that have a replica of it when the cluster is founded, the
// preferred leader first. A group has as many replicas as replicas says, or one on every node if replicas is 0 or
// exceeds the number of nodes. The order of nodes does not matter. Their ids differ, and there is at least one.
//
// The nodes lead the same number of groups, or one more. The groups that share a node have their other replicas on
// different nodes, and the groups that a node leads have different second nodes, as far as possible. So the work of a
// node that fails spreads over many others. In a cluster of unequal zones a node may rarely have one replica more than
// it must.
func Found(nodes []Node, groups, replicas int) [][]string {
	var best *layout
	for try := 0; try < tries && (best == nil || best.excess() > 0); try++ {
		l := newLayout(State{nodes, make([]Group, groups), replicas})
		if l.found(try); best == nil || l.excess() < best.excess() {
			best = l
		}
	}
	placed := make([][]string, groups)
	second := map[[2]string]int{} // how often a node is second in the groups that another one leads
	for g := range placed {
		members := best.Groups[g].Members
		slices.SortStableFunc(members[1:], func(a, b string) int {
			return second[[2]string{members[0], a}] - second[[2]string{members[0], b}]
		})
		if len(members) > 1 {
			second[[2]string{members[0], members[1]}]++
		}
		placed[g] = members
	}
	return placed
}

// found places the replicas of all groups. The leader of the first one has the number first.
func (l *layout) found(first int) {
	for g := range l.Groups {
		l.move(g, "", l.Nodes[(g+first)%len(l.Nodes)].ID)
	}
	shared, behind := map[[2]string]int{}, map[[2]string]int{} // groups of two nodes, and those that one of them leads
	for g := range l.Groups {
		leader := l.Groups[g].Members[0]
		for range l.Replicas - 1 {
			l.move(g, "", l.best(g, "", func(n Node) []int {
				sum := 0
				for _, m := range l.Groups[g].Members {
					sum += shared[[2]string{m, n.ID}]
				}
				return []int{behind[[2]string{leader, n.ID}], sum}
			}))
		}
		for _, a := range l.Groups[g].Members {
			behind[[2]string{leader, a}]++
			for _, b := range l.Groups[g].Members {
				shared[[2]string{a, b}]++
			}
		}
	}
	follower := func(g int, from, _ string) bool { return l.Groups[g].Members[0] != from }
	for g, from, to := l.uneven(follower); from != ""; g, from, to = l.uneven(follower) {
		l.move(g, from, to)
	}
}

// excess says how uneven the numbers of replicas are: their sum of squares above that of numbers that differ by at most
// one.
func (l *layout) excess() int {
	squares, total := 0, 0
	for _, n := range l.Nodes {
		total += l.load[n.ID]
		squares += l.load[n.ID] * l.load[n.ID]
	}
	each, more := total/len(l.Nodes), total%len(l.Nodes)
	return squares - len(l.Nodes)*each*each - more*(2*each+1)
}
