package chaos

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestPauses checks that repeated pauses of the leader break no promise. A pause is the cheapest fault that finds
// many mistakes, such as divergence through the Raft library's heartbeat fast path.
func TestPauses(t *testing.T) {
	skipShort(t)
	plan := pausePlan(*pauses, 3**heartbeat, 5**heartbeat/2)
	rep, err := Run(t.Context(), RunConfig{
		Cluster:  config(t, 3, *heartbeat),
		Duration: plan[len(plan)-1].At + 5**heartbeat,
		Seed:     theSeed(),
		Plans:    [][]Step{plan},
		Restless: true,
		Logf:     func(string, ...any) {},
	})
	require.NoError(t, err)
	t.Log(rep)
	require.Zero(t, rep.Broken)
	require.Equal(t, *pauses, rep.Faults[PauseLeader])
	require.NotZero(t, rep.Compared, "two nodes must be compared at the same index at least once")
	require.Greater(t, rep.Totals.Allowed, int64(10**pauses), "the cluster must decide between the pauses")
}

// pausePlan returns steps that pause the leader n times, with a calm time in between.
func pausePlan(n int, lasts, calm time.Duration) []Step {
	var plan []Step
	for at := time.Second; len(plan) < n; at += lasts + calm {
		plan = append(plan, Step{At: at, For: lasts, Kind: PauseLeader, Seed: uint64(len(plan))})
	}
	return plan
}
