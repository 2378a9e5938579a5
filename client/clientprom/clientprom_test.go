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

func TestMetrics(t *testing.T) {
	s := weirtest.Start(t)
	c, err := client.New(s.Redis(), client.Options{WhenDown: client.Open, Timeout: 10 * time.Second,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	require.NoError(t, err)
	defer c.Close()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(clientprom.New(c, prometheus.Labels{"limiter": "main"}))
	take := func(r *client.Rule, times int) {
		for range times {
			_, _ = c.Take(t.Context(), r, "k")
		}
	}
	take(client.FixedFirst(time.Hour, 1), 3) // admitted, denied, denied from memory
	take(client.Policy("no-such"), 1)
	s.Stop()
	take(client.Fixed(time.Hour, 1), 4)
	require.NoError(t, c.Close()) // no probe may come in between
	problems, err := testutil.GatherAndLint(registry)
	require.NoError(t, err)
	require.Empty(t, problems)
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP weir_client_decisions_total Decisions, by weir or by the client itself.
# TYPE weir_client_decisions_total counter
weir_client_decisions_total{limiter="main",result="admitted"} 5
weir_client_decisions_total{limiter="main",result="denied"} 2
# HELP weir_client_down 1 while weir is unreachable and the fallback decides.
# TYPE weir_client_down gauge
weir_client_down{limiter="main"} 1
# HELP weir_client_fallback_decisions_total Decisions that the fallback made.
# TYPE weir_client_fallback_decisions_total counter
weir_client_fallback_decisions_total{limiter="main"} 4
# HELP weir_client_outages_total Times that weir became unreachable.
# TYPE weir_client_outages_total counter
weir_client_outages_total{limiter="main"} 1
# HELP weir_client_refused_total Commands that weir answered with an error.
# TYPE weir_client_refused_total counter
weir_client_refused_total{limiter="main"} 1
# HELP weir_client_remembered_denials_total Denials that the client answered from an earlier denial, without asking weir.
# TYPE weir_client_remembered_denials_total counter
weir_client_remembered_denials_total{limiter="main"} 1
`), "weir_client_decisions_total", "weir_client_down", "weir_client_fallback_decisions_total", "weir_client_outages_total", "weir_client_refused_total",
		"weir_client_remembered_denials_total"))
}
