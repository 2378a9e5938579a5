package engine_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
)

// TestForgottenUsageIsGoneForEverybody checks that every kind of access sees the usage as reset, although a policy
// change only records the reset.
func TestForgottenUsageIsGoneForEverybody(t *testing.T) {
	at := engine.Stamp{NowNs: 1e18}
	quota := engine.Policy{Limits: []engine.PolicyLimit{quotaLimit(10)}}
	reset := setPolicy("p", quota)
	reset.Policy.Reset = true
	gone := engine.Op{Code: engine.OpPolicy, Key: []byte("p"), Policy: &engine.PolicyChange{Do: engine.PolicyDelete}}
	empty := engine.NewTable(engine.Options{})
	decideAt(empty, at, setPolicy("p", quota))

	for look, finds := range map[string]func(t *testing.T, table *engine.Table){
		"check": func(t *testing.T, table *engine.Table) {
			require.EqualValues(t, 10, decideAt(table, at, check(0, "p", "k0")).Remaining)
		},
		"inspect": func(t *testing.T, table *engine.Table) { require.Zero(t, usedOf(table, at, "policy|p|0|k0")) },
		"has":     func(t *testing.T, table *engine.Table) { require.False(t, table.Has(at, []byte("policy|p|0|k0"))) },
		"len":     func(t *testing.T, table *engine.Table) { require.Zero(t, table.Len(at)) },
		"stats":   func(t *testing.T, table *engine.Table) { require.Zero(t, table.Stats(at).Keys) },
		"random":  func(t *testing.T, table *engine.Table) { require.Nil(t, table.RandomKey(at, 7, 0)) },
		"refund": func(t *testing.T, table *engine.Table) {
			refund := engine.Op{Code: engine.OpRefund, Key: []byte("policy|p|0|k0"), Cost: 1}
			require.EqualValues(t, -1, decideAt(table, at, refund).Remaining)
		},
		"victims": func(t *testing.T, table *engine.Table) {
			table.Victims(at, math.MaxInt64, 10, func(key, _ []byte) { require.Fail(t, "a victim", "%s", key) })
		},
		"hash": func(t *testing.T, table *engine.Table) {
			require.Equal(t, empty.StateHash(at), table.StateHash(at))
		},
		"drain": func(t *testing.T, table *engine.Table) {
			removed := 0
			require.NoError(t, table.Drain(64, func(chunk []engine.Change) error {
				for _, c := range chunk {
					removed += int(one(c.Value == nil))
				}
				return nil
			}))
			require.Equal(t, 100, removed)
		},
	} {
		t.Run(look, func(t *testing.T) {
			table := engine.NewTable(engine.Options{TrackChanges: true})
			decideAt(table, at, setPolicy("p", quota))
			for i := range 100 {
				require.EqualValues(t, 1, decideAt(table, at, check(7, "p", fmt.Sprint("k", i))).Allowed)
			}
			require.NoError(t, table.Drain(1000, func([]engine.Change) error { return nil }))
			require.EqualValues(t, 1, decideAt(table, at, reset).Allowed)
			finds(t, table)
		})
	}

	t.Run("in the same atomic step", func(t *testing.T) {
		table := engine.NewTable(engine.Options{})
		decideAt(table, at, setPolicy("p", quota))
		pairs := []string{"p", "a", "p", "b", "p", "c", "p", "d"}
		require.EqualValues(t, 1, decideAt(table, at, check(10, pairs...)).Allowed)
		steps := []engine.Op{reset, check(10, pairs...), gone, setPolicy("p", quota), check(9, pairs...),
			check(1, pairs...), check(1, pairs...)}
		out := make([]engine.Decision, len(steps))
		table.DecideAtomic(at, steps, out)
		var allowed []int64
		for _, d := range out {
			allowed = append(allowed, d.Allowed)
		}
		require.Equal(t, []int64{1, 1, 1, 1, 1, 1, 0}, allowed)
	})
}
