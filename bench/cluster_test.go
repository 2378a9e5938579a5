package bench

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/bench/servers"
)

// manyNodes is a server with several nodes.
type manyNodes struct {
	servers.Server
	addrs []string
}

func (m manyNodes) Nodes() []string { return m.addrs }

// TestEveryNodeSettles checks that every node completes its deferred work before a cell. Otherwise the next cell
// would pay for it.
func TestEveryNodeSettles(t *testing.T) {
	a, b := &fakeServer{}, &fakeServer{}
	target := Target{Server: manyNodes{a, []string{startFake(t, a), startFake(t, b)}}, Settle: []string{"SAVE"}}
	require.NoError(t, settle(target))
	require.NoError(t, servers.AskTogether(target.Server.Nodes(), "SAVE"))
	require.Equal(t, []string{"SAVE", "SAVE"}, a.seen())
	require.Equal(t, []string{"SAVE", "SAVE"}, b.seen())

	silent := "127.0.0.1:1"
	target.Server = manyNodes{a, []string{a.addr, silent}}
	require.ErrorContains(t, settle(target), silent)
	require.Error(t, servers.AskTogether(target.Server.Nodes(), "SAVE"))
}

// TestSmokeComparesTheCluster runs the cluster's suite with real servers and tiny cells.
func TestSmokeComparesTheCluster(t *testing.T) {
	r := newRealRun(t, 1, 50*time.Millisecond)
	small := Load{Workload: TokenBucket, Clients: 5, Pipeline: 16, Keys: 1000}
	denied := Load{Workload: Denied, Clients: 5, Pipeline: 16, Keys: 10}
	report, err := r.runner.Run(context.Background(), []Scenario{
		beside("small", small, leaderName, followerName, osName, weirName, luaName),
		beside("denied", denied, leaderName, weirName),
	})
	require.NoError(t, err)

	require.Len(t, report.Scenarios[0].Rows, 5)
	require.Len(t, report.Scenarios[1].Rows, 2)
	require.Len(t, report.Targets[0].CommandLines, clusterSize)
	for _, s := range report.Scenarios {
		for _, row := range s.Rows {
			require.Positive(t, row.Figures[Rate].Min, row.Target)
			require.Positive(t, row.Samples[0].Read, row.Target)
		}
	}
	leader, follower := report.Scenarios[0].Rows[0], report.Scenarios[0].Rows[1]
	require.NotEqual(t, leader.CommandLine[4], follower.CommandLine[4], "another node's port")
	require.Positive(t, leader.Figures[DiskBytes].Median)
	for _, row := range report.Scenarios[1].Rows {
		require.Less(t, row.AdmittedShare, 0.5, row.Target)
	}
	r.requireGone(t, 2*clusterSize+2)
}

func TestSmokeSnapshotsUnderLoad(t *testing.T) {
	c := SnapshotCluster(buildWeir(t), t.TempDir())
	var steps []Step
	snapshots := Snapshots{Keys: 5000, Rounds: 1, Top: 100 * time.Millisecond, Quiet: 100 * time.Millisecond,
		Clients: 5, Pipeline: 4, Share: UsualShare,
		Progress: func(s Step) { steps = append(steps, s) }}
	report, err := snapshots.Run(context.Background(), c)
	require.NoError(t, err)
	kinds := mapOf(report.Kinds, func(w Window) WindowKind { return w.Kind })
	require.Equal(t, []WindowKind{Quiet, OneSaves, AllSave, Aftermath}, kinds)
	for _, k := range report.Kinds {
		require.Zero(t, k.Errors, k.Said)
		require.Positive(t, k.Seconds)
	}
	require.Positive(t, report.Kinds[0].Decisions)
	require.Positive(t, report.Kinds[0].P50Ms)
	require.InEpsilon(t, report.TopPerSecond/2, report.PerSecond, 1e-9)
	require.Len(t, steps, steps[0].Total)
	require.Len(t, report.Windows, 6)
	for _, pid := range c.PIDs() {
		require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH, "it has ended")
	}
}

func TestClusterSaysWhyItIsNotReady(t *testing.T) {
	c := WeirCluster(buildWeir(t), t.TempDir(), 3, "sometimes")
	err := c.Start(context.Background())
	require.ErrorIs(t, err, servers.ErrNotReady)
	require.ErrorContains(t, err, "sometimes")
	require.NoError(t, c.Stop())
}

// TestClusterStartsAgain checks that a stopped cluster restarts at its addresses with its data.
func TestClusterStartsAgain(t *testing.T) {
	c := WeirCluster(buildWeir(t), t.TempDir(), 1, "fsync")
	t.Cleanup(func() { require.NoError(t, c.Stop()) })
	ctx := context.Background()
	require.NoError(t, c.Start(ctx))
	addr, err := c.Addr(ctx)
	require.NoError(t, err)
	require.NoError(t, servers.AskOnce(addr, "RL.TOKENBUCKET", "k", "1/h", "5"))
	require.NoError(t, c.Stop())
	require.NoError(t, c.Start(ctx))
	require.NoError(t, c.Start(ctx), "twice is once")
	again, err := c.Addr(ctx)
	require.NoError(t, err)
	require.Equal(t, addr, again)
	require.NoError(t, haveKeys(again, 1))
}
