package router

import (
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/limiter"
)

// TestLeadersAreSpread checks that a node gives a group to its preferred leader after that node has been up and close
// behind for a while.
func TestLeadersAreSpread(t *testing.T) {
	r, groups := newTest(t, 4)
	member := func(id string) limiter.Member { return limiter.Member{ID: id, Voter: true, Up: true} }
	for _, g := range groups {
		g.topology = limiter.Topology{Self: "a", Leader: "a",
			Nodes: []limiter.Member{member("a"), member("b"), member("c")}}
	}
	seen, now := make([]spread, 4), time.Now()
	moved := func() string {
		return fmt.Sprint(groups[0].moved, groups[1].moved, groups[2].moved, groups[3].moved)
	}
	for range steadyFor - 1 {
		r.spreadDue(seen, now)
	}
	groups[2].topology.Nodes[2].Up = false // for a moment
	require.Equal(t, "[] [] [] []", moved())
	r.spreadDue(seen, now)
	require.Equal(t, "[] [b] [] []", moved())
	groups[1].topology.Leader = "b"
	r.spreadDue(seen, now)
	groups[2].topology.Nodes[2].Up = true
	for range steadyFor - 1 {
		r.spreadDue(seen, now)
	}
	require.Equal(t, "[] [b] [] []", moved(), "the count begins again")
	r.spreadDue(seen, now)
	require.Equal(t, "[] [b] [c] []", moved())
	groups[2].topology.Nodes[2].LagEntries = closeBehind + 1
	for range 2 * steadyFor {
		r.spreadDue(seen, now)
	}
	require.Equal(t, "[] [b] [c] []", moved())
}

// TestLeadersAreEvenAtOnce checks that the nodes that are up lead equally many groups, or one more, when the
// preferred leaders have been able to lead for steadyFor looks: after the founding by one node, and after failures.
func TestLeadersAreEvenAtOnce(t *testing.T) {
	const ids = "abcde"
	for _, nodes := range []int{3, 5} {
		for _, n := range []int{4, 8, 64} {
			for down := range 1 << nodes {
				if bits.OnesCount(uint(down)) > nodes/2 {
					continue
				}
				leader := ids[bits.TrailingZeros(^uint(down))]
				r, groups := newTest(t, n)
				leads := map[string]int{}
				for _, g := range groups {
					g.topology = limiter.Topology{Self: string(leader), Leader: string(leader)}
					for i := range nodes {
						g.topology.Nodes = append(g.topology.Nodes,
							limiter.Member{ID: ids[i : i+1], Voter: true, Up: down&(1<<i) == 0})
					}
				}
				seen := make([]spread, n)
				for range steadyFor {
					r.spreadDue(seen, time.Now())
				}
				for _, g := range groups {
					leads[append(g.moved, string(leader))[0]]++
				}
				counts := slices.Sorted(maps.Values(leads))
				require.Equal(t, min(nodes-bits.OnesCount(uint(down)), n), len(counts), "%b of %d down", down, nodes)
				require.LessOrEqual(t, counts[len(counts)-1]-counts[0], 1, "%b of %d down: %v", down, nodes, leads)
			}
		}
	}
}

// TestAFailedTransferIsTriedAgain checks that a group whose transfer failed is given again soon, and that other groups
// do not wait for it.
func TestAFailedTransferIsTriedAgain(t *testing.T) {
	r, groups := newTest(t, 4)
	for _, g := range groups {
		g.topology = limiter.Topology{Self: "a", Leader: "a", Nodes: []limiter.Member{
			{ID: "a", Voter: true, Up: true}, {ID: "b", Voter: true, Up: true}}}
	}
	groups[1].fail(errors.New("no answer"))
	seen, now := make([]spread, 4), time.Now()
	for range steadyFor {
		r.spreadDue(seen, now)
	}
	require.Equal(t, []string{"b"}, groups[3].moved)
	groups[1].fail(nil)
	for range againAfter - 1 {
		r.spreadDue(seen, now)
	}
	require.Empty(t, groups[1].moved)
	r.spreadDue(seen, now)
	require.Equal(t, []string{"b"}, groups[1].moved)
}

// TestATransferHolds checks that a leader which an operator chose keeps a group for transferHold, and that the
// preferred leader gets it back sooner after a failure.
func TestATransferHolds(t *testing.T) {
	const preferredIsBack = steadyFor + 2
	for _, test := range []struct {
		name   string
		before string                           // the leader before this node, which transferred the group
		change func(n int, t *limiter.Topology) // after n seconds
		after  int                              // seconds until the group moves
		ago    time.Duration                    // since the transfer
	}{
		{"a transfer", "b", func(int, *limiter.Topology) {}, int(transferHold/time.Second) + steadyFor, 0},
		{"a transfer from a third node", "c", func(int, *limiter.Topology) {},
			int(transferHold/time.Second) + steadyFor, 0},
		{"no leader before", "", func(int, *limiter.Topology) {}, steadyFor, 0},
		{"the preferred leader fails later", "b", func(n int, t *limiter.Topology) {
			t.Nodes[1].Up = n != 100
		}, 100 + steadyFor + 1, 0},
		{"the preferred leader had failed", "b", func(n int, t *limiter.Topology) { t.Nodes[1].Up = n > 1 },
			preferredIsBack, 0},
		{"the leader before is seen down late", "c", func(n int, t *limiter.Topology) { t.Nodes[2].Up = n < 2 },
			preferredIsBack, 0},
		{"the leader before fails much later", "c", func(n int, t *limiter.Topology) { t.Nodes[2].Up = n < 60 },
			int(transferHold/time.Second) + steadyFor, 0},
		{"the leader was elected, and the leader before stays up", "c", func(int, *limiter.Topology) {}, steadyFor,
			time.Hour},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, groups := newTest(t, 2)
			g := groups[1]
			g.topology = limiter.Topology{Self: "a", Leader: test.before}
			for _, id := range []string{"a", "b", "c"} {
				g.topology.Nodes = append(g.topology.Nodes, limiter.Member{ID: id, Voter: true, Up: true})
			}
			seen, now := make([]spread, 2), time.Now()
			r.spreadDue(seen, now)
			g.topology.Leader, g.transferred = "a", now.Add(-test.ago)
			n := 0
			for ; len(g.moved) == 0 && n < 2*int(transferHold/time.Second); n++ {
				now = now.Add(time.Second)
				test.change(n, &g.topology)
				r.spreadDue(seen, now)
			}
			require.Equal(t, []string{"b"}, g.moved)
			require.InDelta(t, test.after, n, 2)
		})
	}
}

// TestANodeWithoutTheFirstGroupLeadsNoOther checks that a node on which the first group has ended gives every group
// away that it leads, also while a transfer holds.
func TestANodeWithoutTheFirstGroupLeadsNoOther(t *testing.T) {
	r, groups := newTest(t, 2)
	g := groups[1]
	g.topology = limiter.Topology{Self: "b", Leader: "a"}
	for _, id := range []string{"a", "b", "c"} {
		g.topology.Nodes = append(g.topology.Nodes, limiter.Member{ID: id, Voter: true, Up: true})
	}
	g.topology.Nodes[0].LagEntries = closeBehind + 1
	seen, now := make([]spread, 2), time.Now()
	r.spreadDue(seen, now)
	g.topology.Leader, g.transferred = "b", now
	for range 2 * steadyFor {
		r.spreadDue(seen, now)
	}
	require.Empty(t, g.moved, "it leads the group that prefers it")
	r.groups.Store(&[]replica{{}, r.all()[1]})
	for range 2 * steadyFor {
		r.spreadDue(seen, now)
		if len(g.moved) > 0 {
			break
		}
	}
	require.Equal(t, []string{"c"}, g.moved)
}
