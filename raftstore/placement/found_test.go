package placement_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/raftstore/placement"
)

// cluster returns nodes in zones of the given sizes, in random order.
func cluster(r *rand.Rand, zones ...int) []placement.Node {
	var nodes []placement.Node
	for z, size := range zones {
		for range size {
			nodes = append(nodes, placement.Node{ID: fmt.Sprintf("n%03d", len(nodes)), Zone: fmt.Sprintf("z%d", z)})
		}
	}
	r.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
	return nodes
}

// randomCluster returns up to 24 nodes. Some clusters have no zones, some have zones of very different sizes.
func randomCluster(r *rand.Rand) []placement.Node {
	sizes := make([]int, 1+r.IntN(6))
	for i := range sizes {
		sizes[i] = 1 + r.IntN([]int{1, 2, 4, 8}[r.IntN(4)])
	}
	nodes := cluster(r, sizes...)
	if len(sizes) == 1 {
		for i := range nodes {
			nodes[i].Zone = ""
		}
	}
	return nodes
}

// counts are what the checks of a placement count.
type counts struct {
	replicas, leaders map[string]int
	zone              map[string]string
	size              map[string]int // of a zone
}

func count(nodes []placement.Node, placed [][]string) counts {
	c := counts{map[string]int{}, map[string]int{}, map[string]string{}, map[string]int{}}
	for _, n := range nodes {
		c.replicas[n.ID], c.leaders[n.ID], c.zone[n.ID] = 0, 0, n.Zone
		c.size[n.Zone]++
	}
	for _, members := range placed {
		c.leaders[members[0]]++
		for _, id := range members {
			c.replicas[id]++
		}
	}
	return c
}

func (c counts) inZones(members []string) map[string]int {
	n := map[string]int{}
	for _, id := range members {
		n[c.zone[id]]++
	}
	return n
}

// spreadOf returns the difference between the greatest and the least number.
func spreadOf(of map[string]int) int {
	lo, hi := 1<<60, 0
	for _, n := range of {
		lo, hi = min(lo, n), max(hi, n)
	}
	return hi - lo
}

// checkEven checks that the numbers of replicas differ by at most one, or that no move makes them more even: each costs
// a group some of its spread over the zones.
func (c counts) checkEven(t *testing.T, placed [][]string, what string) {
	t.Helper()
	if spreadOf(c.replicas) <= 1 {
		return
	}
	for a, many := range c.replicas {
		for b, few := range c.replicas {
			if many < few+2 {
				continue
			}
			require.NotEqual(t, c.zone[a], c.zone[b], "%s and %s of one zone: %s", a, b, what)
			for _, members := range placed {
				in := c.inZones(members)
				require.False(t, slices.Contains(members, a) && !slices.Contains(members, b) &&
					in[c.zone[b]] < in[c.zone[a]], "a replica can be moved from %s to %s: %s", a, b, what)
			}
		}
	}
}

// checkSpread checks that each group has its replicas, in different zones or as many as there are, and that the nodes
// have the same number, or one more, as far as that allows it.
func checkSpread(t *testing.T, nodes []placement.Node, placed [][]string, replicas int, what string) counts {
	t.Helper()
	c := count(nodes, placed)
	for _, members := range placed {
		distinct := slices.Compact(slices.Sorted(slices.Values(members)))
		require.Len(t, distinct, replicas, what)
		in := c.inZones(members)
		require.Len(t, in, min(replicas, len(c.size)), what)
		for z, n := range in {
			for other, size := range c.size {
				require.True(t, n <= in[other]+1 || in[other] == size, "zones %s and %s: %s", z, other, what)
			}
		}
	}
	c.checkEven(t, placed, what)
	return c
}

func TestFound(t *testing.T) {
	r := rand.New(rand.NewPCG(43, 1))
	for range 800 {
		nodes := randomCluster(r)
		groups, replicas := 1+r.IntN(40), []int{0, 1, 3, 5, 30}[r.IntN(5)]
		placed := placement.Found(nodes, groups, replicas)
		what := fmt.Sprintf("%v groups=%d replicas=%d: %v", nodes, groups, replicas, placed)

		r.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
		require.Equal(t, placed, placement.Found(nodes, groups, replicas))
		if replicas == 0 || replicas > len(nodes) {
			replicas = len(nodes)
		}
		require.Len(t, placed, groups)
		c := checkSpread(t, nodes, placed, replicas, what)
		require.LessOrEqual(t, spreadOf(c.leaders), 1, what)
	}
}

// TestALossSpreads checks what the loss of a node makes others do. The nodes of other zones take over its groups about
// evenly, because the groups have different second nodes.
func TestALossSpreads(t *testing.T) {
	r := rand.New(rand.NewPCG(43, 2))
	for range 100 {
		sizes := slices.Repeat([]int{2 + r.IntN(5)}, 3+r.IntN(3))
		if r.IntN(2) == 0 {
			sizes = []int{6 + r.IntN(20)}
		}
		nodes, groups := cluster(r, sizes...), 1+r.IntN(100)
		placed := placement.Found(nodes, groups, 3)
		for _, lost := range nodes {
			left := without(placed, lost.ID)
			what := fmt.Sprintf("%v groups=%d without %s: %v", sizes, groups, lost.ID, placed)
			c := count(nodes, left)
			delete(c.leaders, lost.ID)
			others := maps.Clone(c.leaders)
			maps.DeleteFunc(others, func(id string, _ int) bool { return len(sizes) > 1 && c.zone[id] == lost.Zone })
			require.LessOrEqual(t, spreadOf(others), 3, what)
			led, seconds := 0, map[string]bool{}
			for _, members := range placed {
				if members[0] == lost.ID {
					led++
					seconds[members[1]] = true
				}
			}
			require.GreaterOrEqual(t, len(seconds), (min(led, len(others))+1)/2, what)

		}
	}
}
