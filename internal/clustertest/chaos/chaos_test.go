package chaos

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/clustertest/ledger"
)

// TestChaos injects every kind of fault and checks that the run has no violation. It is the main gate.
func TestChaos(t *testing.T) {
	skipShort(t)
	everyFault(t, config(t, *nodes, *heartbeat))
}

// TestGroups does the same in a cluster with four Raft groups, with the faults that concern one of them.
func TestGroups(t *testing.T) {
	skipShort(t)
	cluster := config(t, *nodes, *heartbeat)
	if cluster.Groups() > 1 {
		t.Skip("TestChaos runs with several groups")
	}
	cluster.Args = append(cluster.Args, "--groups", "4")
	everyFault(t, cluster)
}

// TestSpread moves replicas under faults of the network, in a cluster whose groups are on a part of the nodes. With
// --replicas in -chaos.args TestChaos injects all other faults there, too.
func TestSpread(t *testing.T) {
	skipShort(t)
	cluster := config(t, tierNodes, *heartbeat)
	cluster.Args = append(cluster.Args, "--groups", strconv.Itoa(tierGroups), "--replicas", strconv.Itoa(tierReplicas))
	seed := theSeed()
	rep := mustPass(t, RunConfig{
		Cluster:  cluster,
		Duration: spreadTime,
		Seed:     seed,
		Spenders: *spenders,
		Restless: true, // the run is too short for a judgement
		Plans:    [][]Step{Plan(seed, spreadTime, SpreadKinds()), Plan(seed, spreadTime, NetworkKinds())},
	})
	require.NotZero(t, rep.Moved)
}

// spreadTime is long enough for some moves.
const spreadTime = 25 * time.Second

// movesInTurn is how many replicas move while each other kind of fault comes once.
const movesInTurn = 3

func everyFault(t *testing.T, cluster ClusterConfig) {
	t.Helper()
	kinds := ProcessKinds()
	if cluster.Groups() > 1 {
		kinds = append(kinds, GroupKinds()...)
	}
	if cluster.Replicas() > 0 {
		kinds = append(kinds, slices.Repeat(SpreadKinds(), movesInTurn)...)
	}
	seed := theSeed()
	mustPass(t, RunConfig{
		Cluster:  cluster,
		Duration: *duration,
		Seed:     seed,
		Spenders: *spenders,
		Plans:    [][]Step{Plan(seed, *duration, kinds), Plan(seed, *duration, NetworkKinds())},
	})
}

// mustPass checks that a run has no violation.
func mustPass(t *testing.T, cfg RunConfig) *Report {
	t.Helper()
	cfg.Logf = t.Logf
	rep, err := Run(t.Context(), cfg)
	require.NoError(t, err)
	t.Log(rep)
	require.Zero(t, rep.Broken, "repeat the schedule with -chaos.seed=%d -chaos.nodes=%d -chaos.duration=%v", rep.Seed,
		rep.Nodes, rep.Duration)
	return rep
}

// TestStandaloneKillIsFound kills a standalone server, which saves once a second and therefore loses recent grants. The
// harness must report that. A standalone server promises no more, so it serves as a mutation that is always available.
// A kill right after a save loses nothing, so there may be several runs.
func TestStandaloneKillIsFound(t *testing.T) {
	skipShort(t)
	rep := &Report{}
	for try := 0; rep.Broken == 0 && try < 3; try++ {
		var err error
		rep, err = Run(t.Context(), RunConfig{
			Cluster:  config(t, 1, 0),
			Duration: 8 * time.Second,
			Seed:     theSeed(),
			Plans: [][]Step{{{At: 2 * time.Second, For: time.Second, Kind: KillOne},
				{At: 5 * time.Second, For: time.Second, Kind: KillOne}}},
			Logf: t.Logf,
		})
		require.NoError(t, err)
		t.Log(rep)
	}
	require.NotZero(t, rep.Broken)
	var found []error
	for _, v := range rep.Violations {
		found = append(found, v.Err)
	}
	require.True(t, anyIs(found, ledger.ErrNotLinearizable), "%v", found)
}

// TestStandaloneUndisturbed runs the same server without faults. It keeps every guarantee, so the findings of the
// harness come from the faults.
func TestStandaloneUndisturbed(t *testing.T) {
	skipShort(t)
	rep, err := Run(t.Context(), RunConfig{
		Cluster:  config(t, 1, 0),
		Duration: 9 * time.Second,
		Seed:     theSeed(),
		Orderly:  true,
		Plans:    [][]Step{{{At: 3 * time.Second, For: 500 * time.Millisecond, Kind: PauseOne}}},
		Logf:     t.Logf,
	})
	require.NoError(t, err)
	t.Log(rep)
	require.Zero(t, rep.Broken)
}
