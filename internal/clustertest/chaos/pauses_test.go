package chaos

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Pauses of the leader, one upon another: the cheapest fault that finds the most,
// among it the divergence behind the Raft library's heartbeat fast path.
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
	require.NotZero(t, rep.Compared, "no two nodes were ever seen at one index")
	require.Greater(t, rep.Totals.Allowed, int64(10**pauses), "hardly anything was decided between the pauses")
}

// pausePlan pauses the leader n times, for a while each.
func pausePlan(n int, lasts, calm time.Duration) []Step {
	var plan []Step
	for at := time.Second; len(plan) < n; at += lasts + calm {
		plan = append(plan, Step{At: at, For: lasts, Kind: PauseLeader, Seed: uint64(len(plan))})
	}
	return plan
}
