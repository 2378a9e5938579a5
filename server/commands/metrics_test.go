package commands

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/metrics"
	"github.com/weir-project/weir/server/servertest"
	"github.com/weir-project/weir/server/service"
)

// reporting is a node of a cluster that reports every field.
type reporting struct{ *servertest.FakeReplica }

func (reporting) Consensus() limiter.Consensus {
	return limiter.Consensus{LeaderChanges: 3, Clamps: 2, Late: 1, ColdStarts: 5, Uncredited: 4,
		DowntimeCredit: time.Minute, Entries: 2, EntryOps: 300}
}
func (reporting) Storage() (limiter.Storage, bool) {
	return limiter.Storage{UsedBytes: 1, FreeBytes: 2, SizeBytes: 3}, true
}

// fullServer has a value for every metric.
func fullServer(t *testing.T) *Shared {
	node := servertest.NewFakeCluster().Node("a")
	srv, err := NewShared(silent(Config{Version: "1.2.3"}), reporting{node})
	require.NoError(t, err)
	c := (&testServer{Shared: srv}).client(t)
	c.say("RL.POLICY SET login LIMIT FIXED 1h 1")
	c.say("RL.CHECK login 42")
	return srv
}

// value reads one series of /metrics.
func value(t *testing.T, srv *Shared, series string) string {
	t.Helper()
	page := ask(newHTTP(srv), http.MethodGet, "/metrics").Body.String()
	for line := range strings.Lines(page) {
		if v, ok := strings.CutPrefix(line, series+" "); ok {
			return strings.TrimSpace(v)
		}
	}
	require.Failf(t, "no such series", "%s in\n%s", series, page)
	return ""
}

// TestMetricsLint checks the metrics with Prometheus' own linter.
func TestMetricsLint(t *testing.T) {
	problems, err := testutil.GatherAndLint(metrics.NewRegistry(fullServer(t).Service))
	require.NoError(t, err)
	for _, p := range problems {
		require.False(t, strings.HasPrefix(p.Metric, "weir_"), "%s: %s", p.Metric, p.Text)
	}
}

// TestMetricsPage checks that docs/metrics.md lists exactly the metrics. After a change, write the list again:
// go test ./server/commands -run TestMetricsPage -update
func TestMetricsPage(t *testing.T) {
	const path, begin, end = "../../docs/metrics.md", "<!-- begin: the list -->\n", "<!-- end: the list -->\n"
	file, err := os.ReadFile(path)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(file), begin)
	require.True(t, found)
	_, after, found := strings.Cut(rest, end)
	require.True(t, found)
	page := before + begin + metricsList(t, fullServer(t)) + end + after
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(page), 0o644))
		return
	}
	require.Equal(t, string(file), page, "docs/metrics.md is out of date: regenerate with -update")
}

func metricsList(t *testing.T, srv *Shared) string {
	families, err := metrics.NewRegistry(srv.Service).Gather()
	require.NoError(t, err)
	var b strings.Builder
	b.WriteString("\n| name | kind | labels | what it is |\n|---|---|---|---|\n")
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "weir_") {
			continue // of the runtime
		}
		labels := []string{}
		for _, l := range f.Metric[0].Label {
			labels = append(labels, "`"+l.GetName()+"`")
		}
		b.WriteString("| `" + f.GetName() + "` | " + strings.ToLower(f.GetType().String()) + " | " +
			strings.Join(labels, " ") + " | " + f.GetHelp() + " |\n")
	}
	return b.String() + "\n"
}

// TestMetricsRequests checks that requests are counted by command and by policy. Dry runs and errors are not requests.
func TestMetricsRequests(t *testing.T) {
	srv := newTestServer(t, Config{})
	c := srv.client(t)
	c.say("RL.POLICY SET login LIMIT FIXED 1h 2")
	c.say("RL.POLICY SET site LIMIT FIXED 1h 9")
	for range 3 {
		c.say("RL.CHECK site all login 42")
	}
	c.say("RL.CHECK login 42 COST 0")
	c.say("RL.EXPLAIN RL.CHECK login 42")
	c.say("RL.CHECK nobody 42")
	c.say("RL.FIXED 42 1h 1")
	c.say("RL.SLIDING 42 1h 1")
	c.say("MULTI")
	c.say("RL.FIXED 42 1h 1")
	c.say("EXEC")
	c.say("RL.WAIT RL.SLIDING 43 1h 1 TIMEOUT 0")
	c.say("RL.WAIT RL.SLIDING 43 1h 1 TIMEOUT 0")
	for series, want := range map[string]string{
		`weir_requests_total{command="rl.check",result="allowed"}`:    "2",
		`weir_requests_total{command="rl.check",result="limited"}`:    "1",
		`weir_requests_total{command="rl.fixed",result="allowed"}`:    "1",
		`weir_requests_total{command="rl.fixed",result="limited"}`:    "1",
		`weir_requests_total{command="rl.wait",result="allowed"}`:     "1",
		`weir_requests_total{command="rl.wait",result="limited"}`:     "1",
		`weir_policy_requests_total{policy="login",result="allowed"}`: "2",
		`weir_policy_requests_total{policy="login",result="limited"}`: "1",
		`weir_policy_requests_total{policy="site",result="allowed"}`:  "2",
		`weir_policy_requests_total{policy="site",result="limited"}`:  "0",
		`weir_policy_shadow_limited_total{policy="site"}`:             "0",
		`weir_policies`:                                           "2",
		`weir_decision_duration_seconds_count`:                    "10",
		`weir_error_replies_total{error="WRONGTYPE"}`:             "1",
		`weir_error_replies_total{error="UNKNOWN"}`:               "0",
		`weir_commands_failed_total{command="rl.check"}`:          "1",
		`weir_decisions_total{algorithm="fixed",result="denied"}`: "2",
		`weir_commands_total{command="rl.fixed"}`:                 "2",
		`weir_connections_total`:                                  "0",
		`weir_auth_failures_total`:                                "0",
		`weir_strike_lockouts_total`:                              "0",
		`weir_strikes_total`:                                      "0",
		`weir_memory_max_bytes`:                                   "0",
		`weir_decision_duration_seconds_bucket{le="+Inf"}`:        "10",
	} {
		require.Equal(t, want, value(t, srv.Shared, series), series)
	}

	// A deleted policy loses its series. A changed policy keeps its counts.
	c.say("RL.POLICY DEL site")
	c.say("RL.POLICY SET login LIMIT FIXED 1h 3")
	c.say("RL.CHECK login 43")
	require.Equal(t, "3", value(t, srv.Shared, `weir_policy_requests_total{policy="login",result="allowed"}`))
	require.Equal(t, "1", value(t, srv.Shared, "weir_policies"))
}

// TestMetricsLabelsAreBounded checks that no name chosen by a client becomes a label.
func TestMetricsLabelsAreBounded(t *testing.T) {
	srv := newTestServer(t, Config{})
	c := srv.client(t)
	c.say("RL.POLICY SET login LIMIT FIXED 1h 2")
	c.say("RL.CHECK login secret-key")
	c.say("RL.CHECK secret-policy secret-key")
	c.say("SECRET-COMMAND secret-key")
	c.say("RL.FIXED secret-key 1h 1")
	c.say("CLIENT SETNAME secret-name")
	require.NotContains(t, strings.ToLower(ask(newHTTP(srv.Shared), http.MethodGet, "/metrics").Body.String()),
		"secret-")
}

func TestMetricsStrikes(t *testing.T) {
	srv := newTestServer(t, Config{Password: "right"})
	c := srv.client(t)
	c.say("AUTH wrong")
	c.say("AUTH right")
	for range 2 {
		c.say("RL.STRIKE auth:42 15m 1 1ms 2 15m")
		srv.lim.Advance(time.Second)
	}
	c.say("RL.STRIKE auth:42 15m 1 1ms 2 15m")
	require.Equal(t, "1", value(t, srv.Shared, "weir_auth_failures_total"))
	require.Equal(t, "2", value(t, srv.Shared, "weir_strike_penalties_total"))
	require.Equal(t, "1", value(t, srv.Shared, "weir_strike_lockouts_total"))
	require.Equal(t, "3", value(t, srv.Shared, `weir_requests_total{command="rl.strike",result="limited"}`))
	require.Equal(t, "2", value(t, srv.Shared, "weir_strikes_total"), "one was denied while the penalty runs")
}

// TestMetricsStrikesThroughPolicies checks that strikes and lock-outs count for every cause: a check of a policy, alone
// or with another limit that binds more.
func TestMetricsStrikesThroughPolicies(t *testing.T) {
	srv := newTestServer(t, Config{})
	c := srv.client(t)
	c.say("RL.POLICY SET login LIMIT STRIKE 15m 2 1m 3 15m")
	c.say("RL.POLICY SET both LIMIT TOKENBUCKET 1/h 5 LIMIT STRIKE 15m 9 15m")
	for range 3 {
		c.say("RL.CHECK login 42")
		srv.lim.Advance(time.Minute)
	}
	c.say("RL.CHECK both 43")
	c.say("RL.CHECK both 43 COST 0")
	require.Equal(t, "4", value(t, srv.Shared, "weir_strikes_total"))
	require.Equal(t, "2", value(t, srv.Shared, "weir_strike_penalties_total"))
	require.Equal(t, "1", value(t, srv.Shared, "weir_strike_lockouts_total"))
}

func TestMetricsOfACluster(t *testing.T) {
	srv := fullServer(t)
	for series, want := range map[string]string{
		"weir_cluster_leader_changes_total":               "3",
		"weir_cluster_clock_clamps_total":                 "2",
		"weir_cluster_late_answers_total":                 "1",
		"weir_cluster_entries_total":                      "2",
		"weir_cluster_entry_operations_total":             "300",
		"weir_cluster_cold_starts_total":                  "5",
		"weir_cluster_cold_starts_uncredited_total":       "4",
		"weir_cluster_downtime_credit_seconds_total":      "60",
		"weir_cluster_voters_up":                          "3",
		`weir_cluster_node_lag_entries{node="a"}`:         "0",
		`weir_cluster_node_lag_entries{node="b"}`:         "1",
		`weir_cluster_node_up{node="c"}`:                  "1",
		`weir_cluster_node_clock_ahead_seconds{node="b"}`: "0",
		`weir_cluster_log_format`:                         "1",
		`weir_cluster_node_log_format{node="a"}`:          "2",
		"weir_storage_free_bytes":                         "2",
	} {
		require.Equal(t, want, value(t, srv, series), series)
	}
}

// TestOutcomesDoNotAllocate checks that counting answers does not allocate.
func TestOutcomesDoNotAllocate(t *testing.T) {
	srv := newTestServer(t, Config{})
	srv.client(t).say("RL.POLICY SET login LIMIT FIXED 1h 2")
	ops := []engine.Op{{Code: engine.OpCheck, Key: []byte("k"), Text: []byte("login"), Cost: 1},
		{Key: []byte("k"), Cost: 1}}
	ds := make([]engine.Decision, len(ops))
	var total service.Outcomes
	require.Zero(t, testing.AllocsPerRun(100, func() { srv.Tell(&total, ops, ds) }))
}
