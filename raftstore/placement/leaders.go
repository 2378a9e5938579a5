package placement

import (
	"maps"
	"slices"
)

// Leaders returns for each group the member that should lead it. groups has the ids of the members that can lead each
// group now, the preferred one first. The leaders are even: no other choice lowers the difference between the numbers
// of groups that two members lead. A group is led by its first member, unless that makes them uneven. If the present
// leaders are first, few change. The leader of a group without members is "".
func Leaders(groups [][]string) []string {
	leaders, led := make([]string, len(groups)), map[string]int{}
	for g, members := range groups {
		for k, id := range members {
			led[id] += 0
			if k == 0 {
				leaders[g] = id
				led[id]++
			}
		}
	}
	ids := slices.Sorted(maps.Keys(led))
	for more := true; more; {
		slices.SortStableFunc(ids, func(a, b string) int { return led[b] - led[a] })
		more = slices.ContainsFunc(ids, func(id string) bool { return relieve(groups, leaders, led, id) })
	}
	return leaders
}

// relieve takes a group from a node that leads two more than another, along the shortest path of groups between them,
// or reports false.
func relieve(groups [][]string, leaders []string, led map[string]int, from string) bool {
	via := map[string]int{from: 0} // the group that each node can take over
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		for g, members := range groups {
			if leaders[g] != queue[0] {
				continue
			}
			for _, to := range members {
				if _, reached := via[to]; reached {
					continue
				}
				via[to] = g
				queue = append(queue, to)
				if led[to] > led[from]-2 {
					continue
				}
				led[from]--
				led[to]++
				for to != from {
					g := via[to]
					leaders[g], to = to, leaders[g]
				}
				return true
			}
		}
	}
	return false
}
