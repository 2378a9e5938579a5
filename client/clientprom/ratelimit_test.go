package clientprom_test

import (
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/client/clientprom"
	"github.com/weir-project/weir/internal/weirtest"
)

const counted = `
# HELP ratelimit_requests_allowed Requests that were allowed.
# TYPE ratelimit_requests_allowed counter
ratelimit_requests_allowed{app="api"} 2
# HELP ratelimit_requests_blocked Requests that were denied.
# TYPE ratelimit_requests_blocked counter
ratelimit_requests_blocked{app="api"} 3
# HELP ratelimit_requests_total Requests that were decided.
# TYPE ratelimit_requests_total counter
ratelimit_requests_total{app="api"} 5
`

const usage = `
# HELP ratelimit_current_usage Units in use, of the limit with the least left.
# TYPE ratelimit_current_usage gauge
ratelimit_current_usage{app="api",key="all",policy="service"} 2
ratelimit_current_usage{app="api",key="idle",policy="service"} 0
`

// TestRateLimitNames checks that the metrics have the names of other rate limiters, and that a scrape changes no
// counter.
func TestRateLimitNames(t *testing.T) {
	s := weirtest.Start(t)
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	c, err := client.New(s.Redis(), client.Options{WhenDown: client.Closed, Timeout: 10 * time.Second, Logger: quiet})
	require.NoError(t, err)
	defer c.Close()
	_, err = c.SetPolicy(
		t.Context(), "service", client.PolicyTerms{Limits: []*client.Rule{client.FixedFirst(time.Hour, 2)}})
	require.NoError(t, err)
	collector, err := clientprom.NewRateLimit(c, clientprom.RateLimitOptions{
		Labels: prometheus.Labels{"app": "api"},
		Usage: []client.Pair{{Policy: "service", Key: "all"}, {Policy: "service", Key: "idle"},
			{Policy: "gone", Key: "all"}},
	})
	require.NoError(t, err)
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(collector)
	for range 5 {
		_, err := c.Take(t.Context(), client.Policy("service"), "all")
		require.NoError(t, err)
	}
	names := []string{"ratelimit_requests_allowed", "ratelimit_requests_blocked", "ratelimit_requests_total",
		"ratelimit_current_usage"}
	for range 2 {
		require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(counted+usage), names...))
	}
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() == "ratelimit_avg_response_time" {
			require.EqualValues(t, 5, f.Metric[0].Histogram.GetSampleCount())
			require.Greater(t, len(f.Metric[0].Histogram.Bucket), 10)
		}
	}
	require.Len(t, families, 5)

	s.Stop()
	for range 3 {
		_, _ = c.Usages(t.Context(), []client.Pair{{Policy: "service", Key: "all"}})
	}
	require.True(t, c.Down())
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(counted), names...),
		"a figure must be missing rather than out of date")
}

func TestUsageIsBounded(t *testing.T) {
	many := make([]client.Pair, clientprom.MaxUsage+1)
	for want, pairs := range map[string][]client.Pair{
		"Usage must have at most 100 policies and keys, not 101":                many,
		`Usage must have policies and keys, each pair once, not {"service" ""}`: {{Policy: "service"}},
		`Usage must have policies and keys, each pair once, not {"service" "all"}`: {{Policy: "service", Key: "all"},
			{Policy: "service", Key: "all"}},
	} {
		_, err := clientprom.NewRateLimit(nil, clientprom.RateLimitOptions{Usage: pairs})
		require.ErrorIs(t, err, clientprom.ErrBadOptions)
		require.ErrorContains(t, err, want)
	}
}
