package server

import (
	"runtime"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/weir-project/weir/engine"
)

// newRegistry returns a registry of its own with everything the server counts.
func newRegistry(s *Server) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collector{s},
	)
	return r
}

// collector reads the counters at each scrape: nothing is counted twice, and a
// server nobody scrapes pays nothing.
type collector struct{ s *Server }

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("weir_"+name, help, labels, nil)
}

// metric is one series without labels.
type metric struct {
	name, help string
	kind       prometheus.ValueType
	value      float64
}

// Describe sends nothing: the collector is unchecked, its series depend on the
// algorithms the engine has.
func (c collector) Describe(chan<- *prometheus.Desc) {}

func (c collector) Collect(out chan<- prometheus.Metric) {
	stats := c.s.lim.Stats()
	send := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, kind, v, labels...)
	}
	send(desc("build_info", "1, labeled with what is running.", "version", "goversion"),
		prometheus.GaugeValue, 1, c.s.cfg.Version, runtime.Version())
	decisions := desc("decisions_total", "Decisions by algorithm and result.", "algorithm", "result")
	keys := desc("keys", "Limiters that are not idle, by algorithm; none: keys that are only blocked.", "algorithm")
	for i := range stats.KeysBy {
		name := engine.Algorithm(i).String()
		send(keys, prometheus.GaugeValue, float64(stats.KeysBy[i]), name)
		if engine.Algorithm(i) != engine.NoAlgorithm {
			send(decisions, prometheus.CounterValue, float64(stats.Admitted[i]), name, "admitted")
			send(decisions, prometheus.CounterValue, float64(stats.Denied[i]), name, "denied")
		}
	}
	for _, m := range slices.Concat(limiterMetrics(c.s.lim, stats), c.s.wireMetrics(), c.s.clusterMetrics()) {
		send(desc(m.name, m.help), m.kind, m.value)
	}
}

func limiterMetrics(lim Limiter, stats engine.Stats) []metric {
	const counter, gauge = prometheus.CounterValue, prometheus.GaugeValue
	at := lim.Now()
	saved := 0.0
	if last := lim.LastSave(); !last.IsZero() {
		saved = float64(last.UnixMilli()) / 1000
	}
	drift := time.Duration(time.Now().UnixNano() - at.NowNs - at.WallOffsetNs)
	return []metric{
		{"memory_bytes", "Memory of limiters and their index.", gauge, float64(stats.MemoryBytes)},
		{"memory_max_bytes", "Bound on weir_memory_bytes, 0: none.", gauge, float64(stats.MaxMemoryBytes)},
		{"expired_keys_total", "Idle limiters collected.", counter, float64(stats.Expired)},
		{"evicted_keys_total", "Limiters given up because memory was full.", counter, float64(stats.Evicted)},
		{"forgiven_units_total", "Units in use that evictions forgot.", counter, float64(stats.ForgivenUnits)},
		{"last_save_timestamp_seconds", "When the state was last on disk in full, 0: never.", gauge, saved},
		{"clock_behind_seconds", "How far calendar windows are behind the wall clock; slewed by 0.05 percent.", gauge, drift.Seconds()},
	}
}

// wireMetrics are the counters of what happens below the commands.
func (s *Server) wireMetrics() []metric {
	const counter, gauge = prometheus.CounterValue, prometheus.GaugeValue
	s.mu.Lock()
	connected := len(s.conns)
	s.mu.Unlock()
	w := &s.stats
	return []metric{
		{"connected_clients", "Clients connected now.", gauge, float64(connected)},
		{"max_clients", "Bound on weir_connected_clients.", gauge, float64(s.cfg.MaxClients)},
		{"connections_total", "Clients served since the start.", counter, float64(w.Accepted.Load())},
		{"tls_handshake_failures_total", "TLS handshakes with clients that did not come about.", counter, float64(w.BadHandshakes.Load())},
		{"auth_failures_total", "Wrong passwords.", counter, float64(s.state.stats.authFailures.Load())},
		{"auth_lockouts_total", "Addresses that failed so often that their logins are held back.", counter, float64(s.state.stats.lockouts.Load())},
		{"auth_delays_total", "Logins that were held back or refused for earlier failures of their address.", counter, float64(s.state.stats.authWaits.Load())},
		{"permission_denials_total", "Commands refused because of who sent them.", counter, float64(s.state.stats.noPermission.Load())},
		{"connections_rejected_total", "Clients turned away: too many, in all or from one address.", counter, float64(w.Rejected.Load())},
		{"connections_denied_total", "Clients turned away: protected mode.", counter, float64(w.Denied.Load())},
		{"accept_errors_total", "Errors of accept.", counter, float64(w.AcceptErrors.Load())},
		{"protocol_errors_total", "Connections closed over malformed input.", counter, float64(w.ProtocolErrors.Load())},
		{"auth_timeouts_total", "Clients cut because they did not authenticate.", counter, float64(w.AuthTimeouts.Load())},
		{"slow_readers_total", "Clients cut because they did not read their replies.", counter, float64(w.SlowReaders.Load())},
		{"push_overflows_total", "Clients cut because messages for them piled up.", counter, float64(w.PushOverflows.Load())},
		{"handler_panics_total", "Panics in command handlers; each cost one connection.", counter, float64(w.Panics.Load())},
		{"received_bytes_total", "Bytes read from clients.", counter, float64(w.InputBytes.Load())},
		{"sent_bytes_total", "Bytes written to clients.", counter, float64(w.OutputBytes.Load())},
	}
}

// clusterMetrics are there on a node of a cluster only.
func (s *Server) clusterMetrics() []metric {
	if s.replica == nil {
		return nil
	}
	const gauge = prometheus.GaugeValue
	t := s.replica.Topology()
	return []metric{
		{"cluster_is_leader", "1 on the leader.", gauge, float64(oneIf(t.leads()))},
		{"cluster_has_leader", "1 while this node knows a leader.", gauge, float64(oneIf(t.Leader != ""))},
		{"cluster_term", "Raft's term.", gauge, float64(t.Term)},
		{"cluster_applied_index", "The last entry of the log this node has applied.", gauge, float64(t.AppliedIndex)},
		{"cluster_commit_index", "The last entry of the log this node knows to be committed.", gauge, float64(t.CommitIndex)},
		{"cluster_stale_seconds", "How old the state may be that this node reads, 0 on the leader.", gauge, s.replica.StaleFor().Seconds()},
		{"cluster_nodes", "Nodes of the cluster.", gauge, float64(len(t.Nodes))},
		{"cluster_nodes_up", "Nodes of the cluster that are up, as this one sees it.", gauge, float64(t.count(isUp))},
	}
}
