package chaos

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The main gate: every fault there is, and no promise broken.
func TestChaos(t *testing.T) {
	skipShort(t)
	seed := theSeed()
	rep, err := Run(t.Context(), RunConfig{
		Cluster:  config(t, *nodes, *heartbeat),
		Duration: *duration,
		Seed:     seed,
		Plans:    [][]Step{Plan(seed, *duration, ProcessKinds()), Plan(seed, *duration, NetworkKinds())},
		Logf:     t.Logf,
	})
	require.NoError(t, err)
	t.Log(rep)
	require.Zero(t, rep.Broken, "repeat the schedule with -chaos.seed=%d -chaos.nodes=%d -chaos.duration=%v", rep.Seed, rep.Nodes, rep.Duration)
}

// A server that keeps nothing on disk until a second is over forgets what it
// granted when it is killed. The harness must say so: a standalone server does not
// promise more, which makes it the mutation that is always at hand.
func TestStandaloneKillIsFound(t *testing.T) {
	skipShort(t)
	rep, err := Run(t.Context(), RunConfig{
		Cluster:  config(t, 1, 0),
		Duration: 8 * time.Second,
		Seed:     theSeed(),
		Plans:    [][]Step{{{At: 2 * time.Second, For: time.Second, Kind: KillOne}, {At: 5 * time.Second, For: time.Second, Kind: KillOne}}},
		Logf:     t.Logf,
	})
	require.NoError(t, err)
	t.Log(rep)
	require.NotZero(t, rep.Broken)
	var found []error
	for _, v := range rep.Violations {
		found = append(found, v.Err)
	}
	require.True(t, anyIs(found, ErrForgotten), "%v", found)
	require.True(t, anyIs(found, ErrNotLinearizable), "%v", found)
}

// The same server, left alone, keeps every promise: what the harness finds comes
// from the faults.
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
