package router_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
)

// TestEveryGroupTellsItsEnds checks that holds which end by themselves in several groups write their events in the log
// of their group, each once, as every node sees it.
func TestEveryGroupTellsItsEnds(t *testing.T) {
	const groups, holds = 4, 64
	c := newTier(t, 3, groups)
	c.led(c.nodes[0])
	decide := func(op engine.Op) {
		out := make([]engine.Decision, 1)
		require.Eventually(t, func() bool {
			return c.nodes[0].Decide([]engine.Op{op}, out) == nil && out[0].Status == engine.OK && out[0].Allowed == 1
		}, patience, 10*time.Millisecond)
	}
	l := engine.PolicyLimit{Limit: engine.Limit{Algorithm: engine.FixedWindow, Mode: engine.Forever, Max: 100}}
	decide(engine.Op{Code: engine.OpPolicy, Key: []byte("p"), Policy: &engine.PolicyChange{Do: engine.PolicySet,
		Terms: &engine.Policy{Limits: []engine.PolicyLimit{l}, Record: true}}})
	for i := range holds {
		decide(engine.Op{Code: engine.OpReserve, Text: []byte("p"), Key: fmt.Append(nil, "k", i),
			ID: fmt.Appendf(nil, "{k%d}h", i), Cost: 5, TTLNs: int64(time.Millisecond), Keep: true})
	}
	for _, n := range c.nodes {
		require.Eventually(t, func() bool {
			told, logs := map[string]int64{}, 0
			for g := range groups {
				list, _, _ := n.Events(g, 0, 100)
				for _, e := range list {
					require.Equal(t, engine.EventExpired, e.Kind)
					require.NotContains(t, told, e.ID)
					told[e.ID] = e.Amount
				}
				logs += min(len(list), 1)
			}
			return len(told) == holds && logs == groups
		}, patience, 10*time.Millisecond)
	}
	require.Empty(t, c.fatal)
}
