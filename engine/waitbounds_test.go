package engine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
)

// TestAWaitCountsOnNoHold checks a wait for units that a hold has taken: it is the wait as if the hold were
// committed, because nobody knows that it is not. So a lifetime quota that a hold has filled answers -1. If the hold
// ends unused, the same request is admitted earlier.
func TestAWaitCountsOnNoHold(t *testing.T) {
	for name, limit := range map[string]engine.Limit{
		"quota":  {Algorithm: engine.FixedWindow, Mode: engine.Forever, Max: 3},
		"window": {Algorithm: engine.FixedWindow, Mode: engine.FromFirst, WindowNs: 3600e9, Max: 3},
	} {
		wait := map[string]int64{"quota": -1, "window": 3600e3}[name]
		for _, ends := range []string{"committed", "unused"} {
			h := newHolds(t, map[string]engine.Limit{"p": limit})
			require.EqualValues(t, 1, h.do(reserve("r", 3, 60e9, "p", "k")).Allowed)
			require.Equal(t, wait, h.do(check(1, "p", "k")).RetryMs)
			if ends == "committed" {
				h.do(commit("r", 3))
			}
			h.pass(60e9)
			require.Equal(t, ends == "unused", h.do(check(1, "p", "k")).Allowed > 0, "%s, %s", name, ends)
		}
	}
}

// TestAWaitIsUnderTheDefinitionInForce checks the wait of a key with an override that ends before the wait does. The
// wait is that of the override, because another change may come before its end as well. When the override ends, the
// policy's own limits count: they may admit the request earlier, and a wait after that is under them.
func TestAWaitIsUnderTheDefinitionInForce(t *testing.T) {
	window := func(ns, most int64) engine.Limit {
		return engine.Limit{Algorithm: engine.FixedWindow, Mode: engine.FromFirst, WindowNs: ns, Max: most}
	}
	h := newHolds(t, map[string]engine.Limit{"p": window(60e9, 9)})
	h.do(engine.Op{Code: engine.OpPolicy, Key: []byte("p"), TTLNs: 10e9, Policy: &engine.PolicyChange{
		Do: engine.PolicyOverride, Terms: &engine.Policy{Overrides: []engine.Override{{Pattern: "k",
			UntilNs: engine.Never, Limits: []engine.PolicyLimit{{Limit: window(3600e9, 2)}}}}}}})
	require.EqualValues(t, 1, h.do(check(2, "p", "k")).Allowed)
	require.EqualValues(t, 3600e3, h.do(check(1, "p", "k")).RetryMs)
	h.pass(10e9)
	d := h.do(check(8, "p", "k"))
	require.Zero(t, d.Allowed, "what was used stays used")
	require.EqualValues(t, 50e3, d.RetryMs)
	require.EqualValues(t, 1, h.do(check(7, "p", "k")).Allowed)
}
