package chaos

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestPlanFollowsItsSeed checks that a seed always gives the same schedule, and that another seed gives another
// schedule.
func TestPlanFollowsItsSeed(t *testing.T) {
	const run = 10 * time.Minute
	require.Equal(t, Plan(7, run, ProcessKinds()), Plan(7, run, ProcessKinds()))
	require.NotEqual(t, Plan(7, run, ProcessKinds()), Plan(8, run, ProcessKinds()))
	require.Equal(t, Plan(7, time.Minute, NetworkKinds()),
		Plan(7, run, NetworkKinds())[:len(Plan(7, time.Minute, NetworkKinds()))],
		"a shorter run must be the beginning of a longer one")
}

func TestPlanKeepsItsPace(t *testing.T) {
	for seed := range uint64(50) {
		plan := Plan(seed, 3*time.Minute, ProcessKinds())
		seen := map[Kind]bool{}
		end := firstFault - leastCalm
		for _, s := range plan {
			require.GreaterOrEqual(t, s.At, end+leastCalm)
			require.GreaterOrEqual(t, s.For, shortest)
			require.LessOrEqual(t, s.For, longest)
			end = s.At + s.For
			seen[s.Kind] = true
		}
		require.LessOrEqual(t, end, 3*time.Minute)
		require.Len(t, seen, len(ProcessKinds()), "three minutes must contain every kind of fault")
	}
}

func TestEveryKindIsDone(t *testing.T) {
	kinds := slices.Concat(ProcessKinds(), NetworkKinds(), GroupKinds(), SpreadKinds())
	require.Len(t, faults, len(kinds))
	for _, k := range kinds {
		require.Contains(t, faults, k)
	}
}

// TestGroupsOfTheArguments checks both forms of the flag: a cluster with several groups that is judged as one group has
// violations that are none.
func TestGroupsOfTheArguments(t *testing.T) {
	for args, want := range map[string]int{"": 1, "--groups 4": 4, "--http  --groups=16": 16, "--max-groups=3": 1} {
		require.Equal(t, want, ClusterConfig{Args: strings.Fields(args)}.Groups(), args)
	}
}

// TestOneWallClockIsWrong checks that the fault of the wall clock never makes a second clock wrong. A restart of all
// nodes would correct both at once, and to a cluster that trusts a majority an hour would have passed.
func TestOneWallClockIsWrong(t *testing.T) {
	h := hand{Cluster: &Cluster{Nodes: []*Node{{ID: "n1"}, {ID: "n2"}, {ID: "n3"}}}, rng: rand.New(rand.NewPCG(1, 0))}
	seen := map[string]bool{}
	for range 100 {
		seen[h.clockToStep().ID] = true
	}
	require.Len(t, seen, 3)
	h.Nodes[1].extra = []string{"--test-wall-offset=-1h0m0s"}
	for range 100 {
		require.Equal(t, "n2", h.clockToStep().ID)
	}
}
