//go:build weirfaults

package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/faults"
)

// mutationSeeds bounds the search for a mistake. The first seed finds most mistakes.
const mutationSeeds = 60

// mutationLength is how long such a run injects faults.
const mutationLength = 8 * time.Second

// mutations are known mistakes, each with the mix of faults that exposes it.
var mutations = []struct {
	name    string
	faults  faults.Set
	weights weights
	clients bool // the clients make the mistake, not the server

	groups   int        // 0: one
	shared   bool       // Config.shared
	harmless faults.Set // mistakes that alone break no promise
}{
	{name: "NoClamp", faults: faults.Of(faults.NoClamp),
		weights: weights{"monotonic clock back": 10, "crash": 4, "snapshot": 6, "add node": 2}},
	{name: "WallClock", faults: faults.Of(faults.WallClock),
		weights: weights{"wall clock step": 3, "transfer": 2, "crash": 1}},
	{name: "CollectEarly", faults: faults.Of(faults.CollectEarly), weights: everything},
	{name: "EarlyReply", faults: faults.Of(faults.EarlyReply),
		weights: weights{"crash": 3, "partition": 3, "slow links": 2}},
	{name: "SnapshotWithoutStamp", faults: faults.Of(faults.SnapshotWithoutStamp),
		weights: weights{"snapshot": 6, "restart all": 3, "crash": 3, "add node": 2}},
	{name: "NoSync", faults: faults.Of(faults.NoSync),
		weights: weights{"restart all": 3, "power loss": 2, "snapshot": 1}},
	{name: "NoSyncOfGroups", faults: faults.Of(faults.NoSync), groups: 4,
		weights: weights{"restart all": 3, "power loss": 2, "snapshot": 1}},
	{name: "FastestWall", faults: faults.Of(faults.FastestWall),
		weights: weights{"wall clock step": 4, "restart all": 4}},
	{name: "StaleIndex", faults: faults.Of(faults.StaleIndex),
		weights: weights{"snapshot": 6, "crash": 5, "restart all": 2}},
	{name: "ReadLocally", faults: faults.Of(faults.ReadLocally),
		weights: weights{"crash": 3, "partition": 3, "slow links": 2}},
	{name: "FreshByContact", faults: faults.Of(faults.FreshByContact),
		weights: weights{"crash": 3, "partition": 3, "slow links": 2}},
	{name: "RefundWithoutID", faults: faults.Set{},
		weights: weights{"crash": 3, "connection resets": 4, "partition": 2}, clients: true},
	{name: "NoSlotCheck", faults: faults.Of(faults.NoSlotCheck, faults.StaleMap), harmless: faults.Of(faults.StaleMap),
		groups: 4, weights: weights{"crash": 3, "partition": 2}},
	{name: "FollowLater", faults: faults.Of(faults.FollowLater), groups: 4, shared: true, weights: everything},
}

// TestFaultsAreFound checks that the simulation reports each known mistake. The same run without the mistake must be
// clean.
func TestFaultsAreFound(t *testing.T) {
	if testing.Short() {
		t.Skip("runs many seeds")
	}
	for _, m := range mutations {
		t.Run(m.name, func(t *testing.T) {
			for seed := *seedFlag; seed < *seedFlag+mutationSeeds; seed++ {
				c := Config{Seed: seed, Nodes: 3, Groups: m.groups, Faults: m.harmless, shared: m.shared,
					weights: m.weights, length: mutationLength}
				require.Empty(t, simulate(t, c).Violations, "the run without the mistake must be clean")
				c.Faults, c.refundsWithoutID = m.faults, m.clients
				if r := simulate(t, c); len(r.Violations) > 0 {
					t.Logf("found by seed %d: %s", seed, r.Violations[0])
					return
				}
			}
			t.Errorf("not found by %d seeds", mutationSeeds)
		})
	}
}
