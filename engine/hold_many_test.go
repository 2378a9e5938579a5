package engine_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/race"
)

// manyFactor is by how much limits are larger, and time passes more slowly, in traffic with many holds.
const manyFactor = 1000

func manyPolicies() map[string][]engine.Limit {
	policies := map[string][]engine.Limit{}
	for name, limits := range modelPolicies {
		limits = slices.Clone(limits)
		for i := range limits {
			limits[i].Max *= manyFactor
			limits[i].Rate.Units *= manyFactor
		}
		policies[name] = limits
	}
	return policies
}

// operations returns how many operations a test makes: n, or as many as an environment variable says.
func operations(n int) int {
	if more, err := strconv.Atoi(os.Getenv("WEIR_HOLD_OPERATIONS")); err == nil {
		return more
	}
	return n
}

// TestManyHoldsAreAsTheModelSays is TestHoldsAreAsTheModelSays with hundreds and thousands of holds on each limiter.
func TestManyHoldsAreAsTheModelSays(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	most := 0
	for seed := range uint64(4) {
		g := &holdTraffic{Rand: seeded(seed), at: engine.Stamp{NowNs: 1e18 + 7}, extended: map[string]int64{},
			policies: manyPolicies(), window: []int{300, 6000}[seed/2]}
		if seed%2 == 1 {
			g.changes = maps.Clone(g.policies)
		}
		m := &holdModel{maps.Clone(g.policies), map[string]*heldLimiter{}, map[string]*heldHold{},
			map[string]extension{}}
		table := metaTable(4)
		g.setPolicies(table)
		for i := range operations(4000) {
			g.compare(t, m, table, i)
			if i%100 == 0 {
				for _, name := range modelNames {
					info, _ := table.Inspect(g.at, fmt.Append(nil, "policy|", name, "|0|k0"))
					most = max(most, info.Holders)
				}
			}
		}
	}
	t.Log("at most", most, "holds on one limiter")
	require.Greater(t, most, 200)
}

// TestReplicasAgreeOnManyHolds is TestReplicasAgreeOnHolds with hundreds of holds on each limiter. One replica keeps
// them as older versions did.
func TestReplicasAgreeOnManyHolds(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	for seed := range uint64(8) {
		g := &holdTraffic{Rand: seeded(seed), at: engine.Stamp{NowNs: 1e18 + 7}, any: true,
			policies: manyPolicies(), window: 400}
		if seed%2 == 1 {
			g.changes = maps.Clone(g.policies)
		}
		old := hashTable(2)
		old.SetRules(engine.RulesManyHolds - 1)
		replicas := append(replicasOf(t, seed), &replica{"old", old, plainly})
		for _, r := range replicas {
			g.setPolicies(r.table)
		}
		for range 120 {
			b := block{at: g.at}
			for range 1 + g.IntN(40) {
				b.ops = append(b.ops, g.next())
			}
			requireAlike(t, replicas, b)
			g.pass()
		}
	}
}
