package metrics

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/weir-project/weir/latency"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/service"
)

// NewRegistry returns a new registry with all metrics of the server.
func NewRegistry(s *service.Service) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collector{s},
	)
	return r
}

// collector reads the counters at each scrape.
//
// Clients cannot create label values. Labels name commands, algorithms, nodes, existing policies, and the first words
// of errors. Only service.RLSLimits has values of requests, if the configuration says so, and bounds them.
type collector struct{ *service.Service }

// metric is one series.
type metric struct {
	name, help string
	kind       prometheus.ValueType
	value      float64
	labels     []string // names and values alternate
}

// histogram is one series of durations.
type histogram struct {
	name, help string
	durations  latency.Snapshot
}

// Describe sends nothing. The collector is unchecked, because its series depend on the Limiter.
func (collector) Describe(chan<- *prometheus.Desc) {}

func (s collector) Collect(out chan<- prometheus.Metric) {
	stats := s.Limiter.Stats()
	for _, m := range slices.Concat(
		s.buildMetrics(), s.requestMetrics(), s.policyMetrics(), s.commandMetrics(), s.errorMetrics(),
		tableMetrics(stats), s.timeMetrics(), s.wireMetrics(), s.storageMetrics(), s.clusterMetrics(), s.rlsMetrics(),
		s.ratelimitMetrics(), s.sourceMetrics(),
	) {
		names, values := m.split()
		desc := prometheus.NewDesc(m.prefix()+m.name, m.help, names, nil)
		out <- prometheus.MustNewConstMetric(desc, m.kind, m.value, values...)
	}
	for _, h := range s.histograms() {
		desc := prometheus.NewDesc("weir_"+h.name, h.help, nil, nil)
		out <- prometheus.MustNewConstHistogram(desc, uint64(h.durations.Count), h.durations.Sum.Seconds(),
			h.durations.Cumulative())
	}
}

// prefix begins the name of every metric but those that another program has under the same name.
func (m *metric) prefix() string {
	if strings.HasPrefix(m.name, ratelimit) {
		return ""
	}
	return "weir_"
}

func (m *metric) split() (names, values []string) {
	for i := 0; i < len(m.labels); i += 2 {
		names, values = append(names, m.labels[i]), append(values, m.labels[i+1])
	}
	return names, values
}

// with returns the series with labels, given as alternating names and values.
func (m metric) with(labels ...string) metric {
	m.labels = labels
	return m
}

func counter[T int64 | float64](name, help string, v T) metric {
	return metric{name: name, help: help, kind: prometheus.CounterValue, value: float64(v)}
}

func gauge[T int | int32 | int64 | uint64 | float64](name, help string, v T) metric {
	return metric{name: name, help: help, kind: prometheus.GaugeValue, value: float64(v)}
}

func (s collector) histograms() []histogram {
	hs := []histogram{{
		"decision_duration_seconds",
		"Time from the first decision of a pipeline to the last reply. Each decision counts with the time of the " +
			"whole pipeline. Commands that complete holds or change policies are included.",
		s.Stats.Decisions.Snapshot(),
	}}
	if storage, ok := s.Storage(); ok {
		hs = append(hs, histogram{
			"storage_write_duration_seconds",
			"Time to make decisions durable: a flush on a single node, an append to the log on a node of a cluster.",
			storage.Writes,
		})
	}
	if reporter, ok := s.Limiter.Backend().(limiter.ConsensusReporter); ok {
		hs = append(hs, histogram{"cluster_snapshot_duration_seconds", "Time to write a " +
			"snapshot.", reporter.Consensus().Snapshots})
	}
	return hs
}

// truth returns 1 for true and 0 for false.
func truth(b bool) int32 {
	if b {
		return 1
	}
	return 0
}
