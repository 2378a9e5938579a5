package placement_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/raftstore/placement"
)

func TestLeaders(t *testing.T) {
	require.Empty(t, placement.Leaders(nil))
	require.Equal(t, []string{"", "b"}, placement.Leaders([][]string{nil, {"b", "a"}}))
	require.Equal(t, []string{"a", "c", "b"}, placement.Leaders([][]string{{"a"}, {"a", "b", "c"}, {"b"}}),
		"a and b lead one group each")
	require.Equal(t, []string{"b", "a", "c"}, placement.Leaders([][]string{{"a", "b"}, {"a"}, {"a", "b", "c"}}))
	require.Equal(t, []string{"b", "c", "a"}, placement.Leaders([][]string{{"a", "b"}, {"b", "c"}, {"a"}}),
		"a gives a group to c by way of b")
}

// without returns the members of each group without one node.
func without(placed [][]string, id string) [][]string {
	left := make([][]string, len(placed))
	for g, members := range placed {
		left[g] = slices.DeleteFunc(slices.Clone(members), func(m string) bool { return m == id })
	}
	return left
}

// TestLeadersAfterALoss checks that the leaders of a founded cluster stay as they are, and that those of the nodes that
// are left after a loss differ by at most one.
func TestLeadersAfterALoss(t *testing.T) {
	r := rand.New(rand.NewPCG(43, 5))
	for range 200 {
		nodes := randomCluster(r)
		groups := 1 + r.IntN(60)
		placed := placement.Found(nodes, groups, 3)
		for g, leader := range placement.Leaders(placed) {
			require.Equal(t, placed[g][0], leader)
		}
		if len(nodes) < 3 {
			continue
		}
		left := without(placed, nodes[0].ID)
		what := fmt.Sprintf("without %s: %v", nodes[0].ID, placed)
		led := map[string]int{}
		for _, n := range nodes[1:] {
			led[n.ID] = 0
		}
		for g, leader := range placement.Leaders(left) {
			require.Contains(t, left[g], leader, what)
			led[leader]++
		}
		require.LessOrEqual(t, spreadOf(led), 1, what)
	}
}
