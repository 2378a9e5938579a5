package chaos

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/clustertest/ledger"
)

// These are the goals of the design, at the server's default timings.
const (
	promisedFailover = 3 * time.Second
	promisedTransfer = 200 * time.Millisecond
	// settleTime lets a cluster become quiet between two measurements.
	settleTime = 2 * time.Second
	// calmHeartbeat is so long that no node loses its leadership on a busy machine. An unknown outcome then comes from
	// the restart, and a change of the leader from the transfer.
	calmHeartbeat = 3 * time.Second
)

// TestFailover checks that decisions continue soon after kill -9 of the leader.
func TestFailover(t *testing.T) {
	skipShort(t)
	cluster, probe := started(t, 0)
	var took []time.Duration
	for range *repeat {
		leader, err := cluster.Leader(t.Context(), leaderTimeout)
		require.NoError(t, err)
		killed := probe.Now()
		cluster.Nodes[leader].Process().Kill()
		again, err := probe.FirstAfter(t.Context(), killed, leaderTimeout)
		require.NoError(t, err, "no decision within %v after the leader was killed", leaderTimeout)
		took = append(took, again-killed)
		require.NoError(t, cluster.Nodes[leader].Start())
		require.NoError(t, cluster.Nodes[leader].AwaitUp(t.Context()))
		require.NoError(t, sleep(t.Context(), settleTime))
	}
	summarize(t, "kill -9 of the leader to the next decision", took, promisedFailover)
}

// TestTransfer checks that a planned transfer hardly delays decisions.
func TestTransfer(t *testing.T) {
	skipShort(t)
	cluster, probe := started(t, calmHeartbeat)
	var gaps []time.Duration
	for range *repeat {
		leader, from := -1, time.Duration(0)
		require.NoError(t, poll(t.Context(), leaderTimeout, func() bool {
			if leader = cluster.LeaderNow(); leader < 0 {
				return false
			}
			from = probe.Now()
			_, err := cluster.Nodes[leader].Ask(transferTimeout, "WEIR.CLUSTER", "TRANSFER")
			return err == nil
		}), "no leader transfers its leadership")
		require.NoError(t, sleep(t.Context(), settleTime))
		require.False(t, cluster.Nodes[leader].Leads(), "the old leader must no longer lead")
		gaps = append(gaps, probe.LongestGap(from, probe.Now()))
	}
	summarize(t, "longest gap around a planned transfer", gaps, promisedTransfer)
}

// TestRollingRestart checks that a rolling restart gives clients only outcomes that they may repeat. Closed connections
// are counted separately, because stock clients open another.
func TestRollingRestart(t *testing.T) {
	skipShort(t)
	cluster, probe := started(t, calmHeartbeat)
	var gaps []time.Duration
	for range *repeat {
		from := probe.Now()
		require.NoError(t, cluster.Roll(t.Context()))
		require.NoError(t, sleep(t.Context(), settleTime))
		gaps = append(gaps, probe.LongestGap(from, probe.Now()))
	}
	totals := probe.Stop()
	t.Logf("commands: %s", ledger.Counts(totals.Words))
	summarize(t, "longest gap in a rolling restart", gaps, promisedFailover)
	require.Equal(t, totals.Unknown, totals.Words[wordClosed],
		"only a closed connection may make an outcome unknown: %v",
		totals.Words)
	require.Zero(t, totals.Refused, "%v", totals.Words)
}

// started is a running cluster of three with clients, at default timings with a heartbeat of 0.
func started(t *testing.T, heartbeat time.Duration) (*Cluster, *Prober) {
	t.Helper()
	cfg := config(t, 3, heartbeat)
	cfg.OnExit = func(n *Node, err error) { t.Errorf("%s %v: %v\n%s", n.ID, ErrExited, err, n.LogTail()) }
	cluster, err := NewCluster(cfg)
	if cluster != nil {
		t.Cleanup(cluster.Close)
	}
	require.NoError(t, err)
	require.NoError(t, cluster.StartAll())
	_, err = cluster.Leader(t.Context(), leaderTimeout)
	require.NoError(t, err, "%s", cluster.Nodes[0].LogTail())
	probe := Probe(cluster.Addrs())
	t.Cleanup(func() { probe.Stop() })
	_, err = probe.FirstAfter(t.Context(), 0, leaderTimeout)
	require.NoError(t, err)
	require.NoError(t, sleep(t.Context(), settleTime))
	return cluster, probe
}

// summarize prints the measured times and the goal. It does not judge, because everything takes longer on a busy
// machine.
func summarize(t *testing.T, what string, took []time.Duration, promised time.Duration) {
	t.Helper()
	sorted := slices.Sorted(slices.Values(took))
	median, worst := sorted[len(sorted)/2], sorted[len(sorted)-1]
	t.Logf("%s: median %v, worst %v of %d (promised %v)", what, median.Round(time.Millisecond),
		worst.Round(time.Millisecond), len(sorted), promised)
}
