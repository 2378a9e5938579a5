package chaos

import (
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
