package placement_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/raftstore/placement"
)

// What a tier holds and does, and what that costs. The costs were measured on two cores.
const (
	keys            = 1_000_000_000
	bytesPerKey     = 62
	decisionsPerSec = 1_000_000
	// decisionNs is the processor time of a decision in a full batch on the node that leads its group.
	decisionNs = 5_000
	// entryNs is the processor time of a log entry on three nodes together, whatever is in it, and entriesPerSec is how
	// many entries a busy group writes.
	entryNs       = 450_000
	entriesPerSec = 300
)

// tier is a large cluster. Nodes are lost and come.
type tier struct {
	placement.State
	t     *testing.T
	fresh int // the number of the next node
}

func newTier(t *testing.T, nodes, groups int) *tier {
	c := &tier{t: t, State: placement.State{Replicas: 3}}
	for range nodes {
		c.join(fmt.Sprint("z", len(c.Nodes)%3))
	}
	for _, members := range placement.Found(c.Nodes, groups, c.Replicas) {
		c.Groups = append(c.Groups, placement.Group{Members: members, Bytes: 10})
	}
	return c
}

func (c *tier) join(zone string) {
	c.Nodes = append(c.Nodes, placement.Node{ID: fmt.Sprintf("n%03d", c.fresh), Zone: zone, Up: true})
	c.fresh++
}

// choose returns groups of the leaders that Leaders chooses, and how many of them are not the first members.
func choose(groups [][]string) (led [][]string, changed int) {
	for g, id := range placement.Leaders(groups) {
		led = append(led, []string{id})
		if id != groups[g][0] {
			changed++
		}
	}
	return led, changed
}

// leaders returns the difference between the numbers of groups that two nodes lead.
func (c *tier) leaders(of [][]string) int {
	n := count(c.Nodes, of).leaders
	for _, node := range c.Nodes {
		if !node.Up {
			delete(n, node.ID)
		}
	}
	return spreadOf(n)
}

// TestHundredNodes says what 100 nodes with 256 groups do in an hour in which ten nodes are lost for good, and when 30
// nodes become 60. go test -v prints the figures.
func TestHundredNodes(t *testing.T) {
	const nodes, groups = 100, 256
	r := rand.New(rand.NewPCG(43, 100))
	c := newTier(t, nodes, groups)
	found := count(c.Nodes, placed(c.State))
	t.Logf("founded: replicas a node differ by %d, leaders by %d", spreadOf(found.replicas), spreadOf(found.leaders))
	require.LessOrEqual(t, spreadOf(found.replicas), 1)
	require.LessOrEqual(t, spreadOf(found.leaders), 1)

	total := 0
	for loss := range 10 {
		total += c.lose(r.IntN(len(c.Nodes)), loss)
	}
	t.Logf("10 losses: %d of %d replicas moved", total, groups*c.Replicas)

	c = newTier(t, 30, groups)
	for range 30 {
		c.join(fmt.Sprint("z", len(c.Nodes)%3))
	}
	least := leastMoves(c.State)
	end, moves := rebalance(t, c.State)
	grown := count(c.Nodes, placed(end))
	led, changed := choose(placed(end))
	t.Logf("30 to 60 nodes: %d of %d replicas moved, at least %d; replicas a node differ by %d, leaders by %d, by %d "+
		"as chosen (%d change)", len(moves), groups*c.Replicas, least, spreadOf(grown.replicas),
		spreadOf(grown.leaders), c.leaders(led), changed)
	require.LessOrEqual(t, c.leaders(led), 1)
	require.Len(t, moves, least)
	require.LessOrEqual(t, spreadOf(grown.replicas), 1)

	const replicaBytes = keys * bytesPerKey / groups
	t.Logf("%.0e keys: a replica has %d MB, a node %d MB", float64(keys), replicaBytes/1_000_000,
		c.Replicas*keys*bytesPerKey/nodes/1_000_000)
	t.Logf("%.0e decisions/s: %d a node, %d a group, %d an entry; %.2f cores a node for decisions, %.2f for entries",
		float64(decisionsPerSec), decisionsPerSec/nodes, decisionsPerSec/groups, decisionsPerSec/groups/entriesPerSec,
		float64(decisionsPerSec)*decisionNs/nodes/1e9, float64(groups)*entriesPerSec*entryNs/nodes/1e9)
}

// lose loses a node for good, and puts another in its place. It returns the number of moves.
func (c *tier) lose(node, loss int) int {
	lost := c.Nodes[node]
	c.Nodes[node].Up = false
	left := without(placed(c.State), lost.ID)
	led, changed := choose(left)
	next, chosen := c.leaders(left), c.leaders(led)
	require.LessOrEqual(c.t, next, 3)
	require.LessOrEqual(c.t, chosen, 1)

	c.join(lost.Zone)
	least, plans, moved := leastMoves(c.State, lost.ID), 0, 0
	for {
		moves, err := placement.Plan(c.State, []string{lost.ID})
		require.NoError(c.t, err)
		if len(moves) == 0 {
			break
		}
		c.State = carryOut(c.t, c.State, moves, []string{lost.ID})
		plans, moved = plans+1, moved+len(moves)
	}
	c.Nodes = slices.Delete(c.Nodes, node, node+1)
	after := count(c.Nodes, placed(c.State))
	c.t.Logf("loss %d: leaders differ by %d if the next member leads, by %d as chosen (%d change); %d moves in %d "+
		"plans, at least %d; then replicas a node differ by %d, leaders by %d", loss+1, next, chosen, changed, moved,
		plans, least, spreadOf(after.replicas), spreadOf(after.leaders))
	require.Equal(c.t, least, moved)
	require.LessOrEqual(c.t, spreadOf(after.replicas), 1)
	require.LessOrEqual(c.t, spreadOf(after.leaders), 1)
	return moved
}
