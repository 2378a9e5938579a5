package clientprom

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-project/weir/client"
)

// MaxUsage bounds RateLimitOptions.Usage: each is a time series, and all are read in one round trip.
const MaxUsage = 100

// ErrBadOptions: an option is missing or wrong.
var ErrBadOptions = errors.New("clientprom: bad options")

// RateLimitOptions are choices for NewRateLimit.
type RateLimitOptions struct {
	Labels prometheus.Labels // of every metric
	// Usage are the policies and keys that ratelimit_current_usage shows, at most MaxUsage: the service as a
	// whole, or the largest customers. They are read whenever Prometheus asks, within client.Options.Timeout.
	Usage []client.Pair
}

// rateLimit reads a client whenever it is asked.
type rateLimit struct {
	c                              *client.Client
	usage                          []client.Pair
	total, allowed, blocked, spans *prometheus.Desc
	current                        *prometheus.Desc
}

// NewRateLimit returns a collector with names that rate limiters commonly have, for dashboards that exist
// already: ratelimit_requests_total, ratelimit_requests_allowed and ratelimit_requests_blocked count decisions,
// ratelimit_avg_response_time is a histogram of the seconds that they took, and ratelimit_current_usage is
// a gauge of the units in use by policy and key. Where weir is not reached, the gauge is missing.
func NewRateLimit(c *client.Client, o RateLimitOptions) (prometheus.Collector, error) {
	if len(o.Usage) > MaxUsage {
		return nil, fmt.Errorf("%w: Usage must have at most %d policies and keys, not %d", ErrBadOptions, MaxUsage, len(o.Usage))
	}
	seen := map[client.Pair]bool{}
	for _, p := range o.Usage {
		if p.Policy == "" || p.Key == "" || seen[p] {
			return nil, fmt.Errorf("%w: Usage must have policies and keys, each pair once, not %q", ErrBadOptions, p)
		}
		seen[p] = true
	}
	desc := func(name, help string, variable ...string) *prometheus.Desc {
		return prometheus.NewDesc("ratelimit_"+name, help, variable, o.Labels)
	}
	return &rateLimit{
		c: c, usage: append([]client.Pair(nil), o.Usage...),
		total:   desc("requests_total", "Requests that were decided."),
		allowed: desc("requests_allowed", "Requests that were allowed."),
		blocked: desc("requests_blocked", "Requests that were denied."),
		spans:   desc("avg_response_time", "Seconds that decisions took."),
		current: desc("current_usage", "Units in use, of the limit with the least left.", "policy", "key"),
	}, nil
}

// Describe is of prometheus.Collector. It does not ask weir.
func (m *rateLimit) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.total, m.allowed, m.blocked, m.spans, m.current} {
		to <- d
	}
}

// Collect is of prometheus.Collector.
func (m *rateLimit) Collect(to chan<- prometheus.Metric) {
	s, times := m.c.Stats(), m.c.Times()
	count := func(d *prometheus.Desc, n int64) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n))
	}
	count(m.total, s.Admitted+s.Denied)
	count(m.allowed, s.Admitted)
	count(m.blocked, s.Denied)
	to <- prometheus.MustNewConstHistogram(m.spans, times.Count, times.Sum.Seconds(), times.Within)
	all, err := m.c.Usages(context.Background(), m.usage)
	if err != nil {
		return // weir_client_down tells
	}
	for _, u := range all {
		if u.Err == nil {
			to <- prometheus.MustNewConstMetric(m.current, prometheus.GaugeValue, float64(u.Used), u.Policy, u.Key)
		}
	}
}
