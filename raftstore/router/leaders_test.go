package router

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/limiter"
)

// TestLeadersAreSpread checks that a node gives a group to its preferred leader after that node has been up and close
// behind for a while. It gives one group at a time.
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
		r.spreadOne(seen, now)
	}
	groups[2].topology.Nodes[2].Up = false // for a moment
	require.Equal(t, "[] [] [] []", moved())
	r.spreadOne(seen, now)
	require.Equal(t, "[] [b] [] []", moved())
	groups[1].topology.Leader = "b"
	r.spreadOne(seen, now)
	groups[2].topology.Nodes[2].Up = true
	for range steadyFor - 1 {
		r.spreadOne(seen, now)
	}
	require.Equal(t, "[] [b] [] []", moved(), "the count begins again")
	r.spreadOne(seen, now)
	require.Equal(t, "[] [b] [c] []", moved())
	groups[2].topology.Nodes[2].LagEntries = closeBehind + 1
	for range 2 * steadyFor {
		r.spreadOne(seen, now)
	}
	require.Equal(t, "[] [b] [c] []", moved())
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
			r.spreadOne(seen, now)
			g.topology.Leader, g.transferred = "a", now.Add(-test.ago)
			n := 0
			for ; len(g.moved) == 0 && n < 2*int(transferHold/time.Second); n++ {
				now = now.Add(time.Second)
				test.change(n, &g.topology)
				r.spreadOne(seen, now)
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
	r.spreadOne(seen, now)
	g.topology.Leader, g.transferred = "b", now
	for range 2 * steadyFor {
		r.spreadOne(seen, now)
	}
	require.Empty(t, g.moved, "it leads the group that prefers it")
	r.replace(0, &ended{})
	for range 2 * steadyFor {
		r.spreadOne(seen, now)
		if len(g.moved) > 0 {
			break
		}
	}
	require.Equal(t, []string{"c"}, g.moved)
}
