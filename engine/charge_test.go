package engine_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
)

func charge(n int64, pairs ...string) engine.Op {
	op := check(n, pairs...)
	op.Code = engine.OpCharge
	return op
}

// TestAChargeTakesWhatDoesNotFit checks that a charge takes all of its units from every limit of its policies, whatever
// they have left, and changes nothing if a policy does not exist.
func TestAChargeTakesWhatDoesNotFit(t *testing.T) {
	for name, limit := range heldLimits {
		t.Run(name, func(t *testing.T) {
			h := newHolds(t, heldLimits)
			require.Equal(t, engine.UnknownPolicy, h.do(charge(5, name, "k", "none", "k")).Status)
			require.Zero(t, h.table.Len(h.at))
			require.Equal(t, engine.Decision{Allowed: 1, Remaining: 30}, h.do(charge(70, name, "k")))
			require.Equal(t, engine.Decision{Allowed: 1}, h.do(charge(80, name, "k", "fixed", "j")))
			info, _ := h.table.Inspect(h.at, fmt.Append(nil, "policy|", name, "|0|k"))
			require.EqualValues(t, 150, info.Used)
			require.Equal(t, limit.Max, info.Limit.Max)
			require.EqualValues(t, 20, h.left("fixed", "j"))
			require.Zero(t, h.do(check(1, name, "k")).Allowed)
			h.do(engine.Op{Code: engine.OpBlock, Key: []byte("k"), TTLNs: 1e9})
			require.EqualValues(t, 1, h.do(charge(1, name, "k")).Allowed, "what was used counts behind a block too")
			require.EqualValues(t, 1, h.do(charge(engine.MaxUnits, name, "k")).Allowed)
			require.Zero(t, h.do(charge(0, name, "other")).Status)
			require.EqualValues(t, 100, h.left(name, "other"))
		})
	}
}

// TestAChargeEqualsACommit checks that a charge leaves every limiter as a hold of one unit does that is committed with
// the same units.
func TestAChargeEqualsACommit(t *testing.T) {
	for name := range heldLimits {
		t.Run(name, func(t *testing.T) {
			charged, held := newHolds(t, heldLimits), newHolds(t, heldLimits)
			g := rand.New(rand.NewPCG(1, 2))
			key := fmt.Append(nil, "policy|", name, "|0|k")
			charges := 0
			for i := range 500 {
				if id, n := fmt.Sprint(i), 1+g.Int64N(160); held.do(reserve(id, 1, 10e9, name, "k")).Allowed > 0 {
					held.do(commit(id, n))
					charged.do(charge(n, name, "k"))
					charges++
				}
				a, _ := charged.table.Inspect(charged.at, key)
				b, _ := held.table.Inspect(held.at, key)
				a.Bytes, b.Bytes = 0, 0 // a log may have its units in other blocks
				require.Equal(t, b, a)
				ns := g.Int64N(60e9)
				charged.pass(ns)
				held.pass(ns)
			}
			require.Greater(t, charges, 100)
		})
	}
}
