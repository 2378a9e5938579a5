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
	"google.golang.org/protobuf/encoding/protowire"
)

// traceCollector receives OTLP over HTTP.
type traceCollector struct {
	*httptest.Server
	mu    sync.Mutex
	spans []otlpSpan
}

func startCollector(t *testing.T) *traceCollector {
	c := new(traceCollector)
	c.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.URL.Path != "/v1/traces" {
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, resource := range fieldsOf(body, 1) {
			for _, scope := range fieldsOf(resource, 2) {
				for _, span := range fieldsOf(scope, 2) {
					c.spans = append(c.spans, readSpan(span))
				}
			}
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// otlpSpan has the fields of a span of OpenTelemetry's trace.proto that the tests need.
type otlpSpan struct {
	Name, SpanID, ParentSpanID         string
	StartTimeUnixNano, EndTimeUnixNano uint64
	encoded                            string
}

func readSpan(span []byte) otlpSpan {
	return otlpSpan{
		Name: string(fieldsOf(span, 5)[0]), SpanID: string(fieldsOf(span, 2)[0]),
		ParentSpanID:      string(slices.Concat(fieldsOf(span, 4)...)),
		StartTimeUnixNano: binary64(fieldsOf(span, 7)[0]), EndTimeUnixNano: binary64(fieldsOf(span, 8)[0]),
		encoded: string(span),
	}
}

func binary64(b []byte) uint64 {
	v, _ := protowire.ConsumeFixed64(b)
	return v
}

// fieldsOf returns the values of a field of a message, without their lengths.
func fieldsOf(message []byte, number protowire.Number) (values [][]byte) {
	for len(message) > 0 {
		found, kind, tag := protowire.ConsumeTag(message)
		if tag < 0 {
			return values
		}
		size := protowire.ConsumeFieldValue(found, kind, message[tag:])
		if size < 0 {
			return values
		}
		value := message[tag : tag+size]
		if message = message[tag+size:]; found != number {
			continue
		}
		if kind == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(value)
		}
		values = append(values, value)
	}
	return values
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
		var parts []otlpSpan
		for _, s := range c.spans {
			if s.ParentSpanID == whole.SpanID {
				parts = append(parts, s)
			}
		}
		slices.SortStableFunc(
			parts, func(a, b otlpSpan) int { return int(a.StartTimeUnixNano) - int(b.StartTimeUnixNano) })
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
		require.NotContains(t, s.encoded, "secret")
		if s.Name == "decisions" {
			require.Contains(t, s.encoded, "rl.tokenbucket")
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
