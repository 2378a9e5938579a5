// Package clientprom exports the statistics of a client of weir to Prometheus.
//
//	prometheus.MustRegister(clientprom.New(limits, nil))
//
// It is a separate package, so that programs without Prometheus do not depend on Prometheus.
package clientprom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-project/weir/client"
)

// collector reads client.Stats on each scrape.
type collector struct {
	c                                                   *client.Client
	decisions, memory, fallback, busy, refused, retries *prometheus.Desc
	outages, probes, down                               *prometheus.Desc
}

// New returns a collector for c. Programs with several clients distinguish them by labels.
func New(c *client.Client, labels prometheus.Labels) prometheus.Collector {
	desc := func(name, help string, variable ...string) *prometheus.Desc {
		return prometheus.NewDesc("weir_client_"+name, help, variable, labels)
	}
	return &collector{
		c:         c,
		decisions: desc("decisions_total", "Decisions, by weir or by the client itself.", "result"),
		memory: desc("remembered_denials_total",
			"Denials that the client answered from an earlier denial, without asking weir."),
		fallback: desc("fallback_decisions_total", "Decisions that the fallback made."),
		busy:     desc("busy_denials_total", "Requests that were refused because weir was busy."),
		refused:  desc("refused_total", "Commands that weir answered with an error."),
		retries:  desc("retries_total", "Commands that were retried."),
		outages:  desc("outages_total", "Times that weir became unreachable."),
		probes:   desc("probes_total", "Probes whether weir is reachable again."),
		down:     desc("down", "1 while weir is unreachable and the fallback decides."),
	}
}

// Describe implements prometheus.Collector.
func (m *collector) Describe(to chan<- *prometheus.Desc) { prometheus.DescribeByCollect(m, to) }

// Collect implements prometheus.Collector.
func (m *collector) Collect(to chan<- prometheus.Metric) {
	s := m.c.Stats()
	count := func(d *prometheus.Desc, n int64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	count(m.decisions, s.Admitted, "admitted")
	count(m.decisions, s.Denied, "denied")
	count(m.memory, s.FromMemory)
	count(m.fallback, s.FromFallback)
	count(m.busy, s.FromBusy)
	count(m.refused, s.Refused)
	count(m.retries, s.Retries)
	count(m.outages, s.Switches)
	count(m.probes, s.Probes)
	down := 0.0
	if s.Down {
		down = 1
	}
	to <- prometheus.MustNewConstMetric(m.down, prometheus.GaugeValue, down)
}
