//go:build weirfaults

package router_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/faults"
)

// TestADivergedGroupEndsAlone: a node that computes other results for the keys of one group closes this group, also
// after a restart without the mistake, and serves the others.
func TestADivergedGroupEndsAlone(t *testing.T) {
	const groups, group, odd = 4, 2, 0
	c := newTier(t, 3, groups)
	for _, n := range c.nodes {
		c.led(n)
	}
	c.stop(odd)
	c.opts[odd].Faults = faults.Of(faults.WrongDecisions)
	c.restart(odd)
	c.led(c.nodes[odd])
	op := quota(keyIn(group, groups), 1_000_000)
	require.Eventually(t, func() bool {
		c.nodes[1].Decide([]engine.Op{op}, make([]engine.Decision, 1))
		return c.nodes[odd].Topology().Ended() > 0
	}, patience, 1)
	c.hasEnded(c.nodes[odd], group)
	require.Contains(t, c.nodes[odd].Topology().Groups[group].Ended, "differs from that of a majority")

	c.stop(odd)
	c.opts[odd].Faults = faults.Set{}
	c.restart(odd)
	c.hasEnded(c.nodes[odd], group)
	c.servesAllBut(c.nodes[odd], group, groups)
	require.Empty(t, c.fatal)
}
