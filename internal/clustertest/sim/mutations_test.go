package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/raftstore"
)

// mutationSeeds bounds the search for a fault; most are found by the first seed.
const mutationSeeds = 60

// mutationLength is how long things fail in such a run.
const mutationLength = 8 * time.Second

// mutations are known mistakes, each with the mix of faults that brings it out.
var mutations = []struct {
	name    string
	faults  raftstore.Faults
	weights weights
	clients bool // it is the clients that make it
}{
	{"NoClamp", raftstore.Faults{NoClamp: true}, weights{"monotonic clock back": 10, "crash": 4, "snapshot": 6, "add node": 2}, false},
	{"WallClock", raftstore.Faults{WallClock: true}, weights{"wall clock step": 3, "transfer": 2, "crash": 1}, false},
	{"CollectEarly", raftstore.Faults{CollectEarly: true}, everything, false},
	{"EarlyReply", raftstore.Faults{EarlyReply: true}, weights{"crash": 3, "partition": 3, "slow links": 2}, false},
	{"SnapshotWithoutStamp", raftstore.Faults{SnapshotWithoutStamp: true}, weights{"snapshot": 6, "restart all": 3, "crash": 3, "add node": 2}, false},
	{"NoSync", raftstore.Faults{NoSync: true}, weights{"restart all": 3, "power loss": 2, "snapshot": 1}, false},
	{"FastestWall", raftstore.Faults{FastestWall: true}, weights{"wall clock step": 4, "restart all": 4}, false},
	{"StaleIndex", raftstore.Faults{StaleIndex: true}, weights{"snapshot": 6, "crash": 5, "restart all": 2}, false},
	{"ReadLocally", raftstore.Faults{ReadLocally: true}, weights{"crash": 3, "partition": 3, "slow links": 2}, false},
	{"FreshByContact", raftstore.Faults{FreshByContact: true}, weights{"crash": 3, "partition": 3, "slow links": 2}, false},
	{"RefundWithoutID", raftstore.Faults{}, weights{"crash": 3, "connection resets": 4, "partition": 2}, true},
}

// TestFaultsAreFound switches each mistake on and looks for a check that reports it;
// the same run without it must be clean.
func TestFaultsAreFound(t *testing.T) {
	if testing.Short() {
		t.Skip("runs many seeds")
	}
	for _, m := range mutations {
		t.Run(m.name, func(t *testing.T) {
			for seed := *seedFlag; seed < *seedFlag+mutationSeeds; seed++ {
				c := Config{Seed: seed, Nodes: 3, weights: m.weights, length: mutationLength}
				require.Empty(t, simulate(t, c).Violations, "without the mistake")
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
