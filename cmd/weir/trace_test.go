package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// traceCollector receives OTLP over HTTP.
type traceCollector struct {
	*httptest.Server
	mu    sync.Mutex
	spans []*otlp.Span
}

func startCollector(t *testing.T) *traceCollector {
	c := new(traceCollector)
	c.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var got collector.ExportTraceServiceRequest
		if proto.Unmarshal(body, &got) != nil || r.URL.Path != "/v1/traces" {
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, resource := range got.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				c.spans = append(c.spans, scope.Spans...)
			}
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// childSpans returns, for each span of a name, the names of its child spans in order of time. Each child must begin
// where the previous one ends. Together they must cover the whole span.
func (c *traceCollector) childSpans(t *testing.T, name string) (spans [][]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, whole := range c.spans {
		if whole.Name != name {
			continue
		}
		var parts []*otlp.Span
		for _, s := range c.spans {
			if string(s.ParentSpanId) == string(whole.SpanId) {
				parts = append(parts, s)
			}
		}
		slices.SortStableFunc(
			parts, func(a, b *otlp.Span) int { return int(a.StartTimeUnixNano) - int(b.StartTimeUnixNano) })
		at, names := whole.StartTimeUnixNano, []string(nil)
		for _, part := range parts {
			require.Equal(t, at, part.StartTimeUnixNano, "%s of %s", part.Name, name)
			at, names = part.EndTimeUnixNano, append(names, part.Name)
		}
		require.Equal(t, at, whole.EndTimeUnixNano)
		spans = append(spans, names)
	}
	return spans
}

// TestTraces checks that a collector receives a trace of every decision with --otlp-every=1, including those still
// waiting at the end. The traces must not contain text of clients.
func TestTraces(t *testing.T) {
	c := startCollector(t)
	p := start(t, "--data-dir=", "--otlp-endpoint", c.URL+"/v1/traces", "--otlp-every=1")
	conn := p.dial()
	for range 3 {
		_, err := conn.Do("RL.TOKENBUCKET", "secret:42", "1/s", "5")
		require.NoError(t, err)
	}
	_, err := conn.Do("PING")
	require.NoError(t, err)
	p.stop()
	stages := []string{"read", "decide", "reply"}
	require.Equal(t, [][]string{stages, stages, stages}, c.childSpans(t, "decisions"))
	require.Empty(t, c.childSpans(t, "entry"))
	for _, s := range c.spans {
		require.NotContains(t, s.String(), "secret")
		if s.Name == "decisions" {
			require.Contains(t, s.String(), "rl.tokenbucket")
		}
	}
}

// TestTracesOfACluster checks that log entries of a cluster have traces of their own.
func TestTracesOfACluster(t *testing.T) {
	c := startCollector(t)
	p := start(t, "--durability=memory", "--raft-addr=127.0.0.1:0", "--otlp-endpoint",
		c.URL+"/v1/traces", "--otlp-every=1")
	require.Eventually(t, func() bool {
		_, err := p.dial().Do("RL.TOKENBUCKET", "k", "1/s", "5")
		return err == nil
	}, patience, 50*time.Millisecond)
	p.stop()
	require.NotEmpty(t, c.childSpans(t, "decisions"))
	require.Contains(t, c.childSpans(t, "entry"), []string{"propose", "commit"})
}

func TestTracesAreSampledAndOptional(t *testing.T) {
	c := startCollector(t)
	p := start(t, "--data-dir=", "--otlp-endpoint", c.URL+"/v1/traces", "--otlp-every=4")
	conn := p.dial()
	for range 8 {
		_, err := conn.Do("RL.TOKENBUCKET", "k", "1/s", "5")
		require.NoError(t, err)
	}
	p.stop()
	require.Len(t, c.childSpans(t, "decisions"), 2)
	require.Contains(t, refusal(t, serveCommand("--data-dir=", "--otlp-endpoint=nonsense")),
		"--otlp-endpoint must be like")
	require.Contains(t, refusal(t, serveCommand("--data-dir=", "--otlp-endpoint", c.URL, "--otlp-every=0")),
		"--otlp-every must be")

	c.Close()
	p = start(t, "--data-dir=", "--otlp-endpoint", c.URL+"/v1/traces", "--otlp-every=1")
	p.five("RL.TOKENBUCKET", "k", "1/s", "5")
	p.stop()
	require.Contains(t, p.output(), "cannot send traces", "a collector that is down must not stop the server")
}
