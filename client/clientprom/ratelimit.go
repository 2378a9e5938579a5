package clientprom

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-project/weir/client"
)

// MaxUsage bounds RateLimitOptions.Usage. Each pair is a time series, and all pairs are read in one round trip.
const MaxUsage = 100

// ErrBadOptions: an option is missing or wrong.
var ErrBadOptions = errors.New("clientprom: bad options")

// RateLimitOptions configure NewRateLimit.
type RateLimitOptions struct {
	Labels prometheus.Labels // of every metric
	// Usage lists the policies and keys of ratelimit_current_usage, at most MaxUsage: the service as a whole, or
	// the largest customers. Each scrape reads them, within client.Options.Timeout.
	Usage []client.Pair
}

// rateLimit reads a client on each scrape.
type rateLimit struct {
	c                              *client.Client
	usage                          []client.Pair
	total, allowed, blocked, spans *prometheus.Desc
	current                        *prometheus.Desc
}

// NewRateLimit returns a collector with common metric names of rate limiters, for existing dashboards. The
// counters ratelimit_requests_total, ratelimit_requests_allowed and ratelimit_requests_blocked count decisions.
// The histogram ratelimit_avg_response_time has their durations in seconds. The gauge ratelimit_current_usage
// has the units in use by policy and key. It is missing while weir is not reached.
func NewRateLimit(c *client.Client, o RateLimitOptions) (prometheus.Collector, error) {
	if len(o.Usage) > MaxUsage {
		return nil, fmt.Errorf("%w: Usage must have at most %d policies and keys, not %d", ErrBadOptions,
			MaxUsage, len(o.Usage))
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

// Describe implements prometheus.Collector. It does not ask weir.
func (m *rateLimit) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.total, m.allowed, m.blocked, m.spans, m.current} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
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
		return // weir_client_down reports it
	}
	for _, u := range all {
		if u.Err == nil {
			to <- prometheus.MustNewConstMetric(m.current, prometheus.GaugeValue, float64(u.Used), u.Policy, u.Key)
		}
	}
}
