// Package tracing exports traces of decisions to an OpenTelemetry collector.
package tracing

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/weir-project/weir/internal/cli/buildinfo"
	"github.com/weir-project/weir/raftstore"
	"github.com/weir-project/weir/server/commands"
)

// Flags configure the export of traces to an OpenTelemetry collector.
type Flags struct {
	OTLPEndpoint string `name:"otlp-endpoint" placeholder:"URL" help:"URL to which weir sends OpenTelemetry traces, by OTLP over HTTP, like http://127.0.0.1:4318/v1/traces. By default it sends none. Traces contain commands and times, but no keys."`
	OTLPEvery    int64  `name:"otlp-every" default:"1000" help:"Trace one in this many reads from clients, with its decisions, and one in this many entries of a cluster's log."`
}

const (
	// endTimeout bounds the sending of the last traces, so that a failed collector does not delay a restart.
	endTimeout = 2 * time.Second
	// queueSpans bounds the spans that wait for the collector. Further spans are dropped.
	queueSpans = 2048
	// complaintEvery bounds the log lines about a failed collector, which fails every few seconds.
	complaintEvery = time.Minute
)

// Traces makes spans from the times that the server and the Raft log have recorded. Recording these times is the only
// cost on the hot path.
type Traces struct {
	provider *sdk.TracerProvider
	spans    trace.Tracer
	every    int64
	reads    atomic.Int64
	entries  atomic.Int64
}

var _ commands.Tracer = (*Traces)(nil)

// Open returns nil if traces are not configured.
func (f *Flags) Open(log *slog.Logger, node string) (*Traces, error) {
	if f.OTLPEndpoint == "" {
		return nil, nil
	}
	if at, err := url.Parse(f.OTLPEndpoint); err != nil || at.Host == "" || at.Scheme != "http" &&
		at.Scheme != "https" {
		return nil, fmt.Errorf("--otlp-endpoint must be like http://127.0.0.1:4318/v1/traces, not %q", f.OTLPEndpoint)
	}
	if f.OTLPEvery < 1 {
		return nil, fmt.Errorf("--otlp-every must be 1 or more, not %d", f.OTLPEvery)
	}
	exporter, err := otlptracehttp.New(context.Background(), otlptracehttp.WithEndpointURL(f.OTLPEndpoint))
	if err != nil {
		return nil, fmt.Errorf("--otlp-endpoint: %w", err)
	}
	complain := seldom(complaintEvery)
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		if complain() {
			log.Warn("cannot send traces", "error", err)
		}
	}))
	provider := sdk.NewTracerProvider(
		sdk.WithBatcher(exporter, sdk.WithMaxQueueSize(queueSpans)),
		sdk.WithResource(resource.NewSchemaless(
			attribute.String("service.name", "weir"), attribute.String("service.version", buildinfo.Read().Version),
			attribute.String("service.instance.id", node))),
	)
	return &Traces{provider: provider, spans: provider.Tracer("weir"), every: f.OTLPEvery}, nil
}

// seldom returns a function that returns true at its first call, and again when at least every has passed since.
func seldom(every time.Duration) func() bool {
	var mu sync.Mutex
	var next time.Time
	return func() bool {
		mu.Lock()
		defer mu.Unlock()
		now := time.Now()
		if now.Before(next) {
			return false
		}
		next = now.Add(every)
		return true
	}
}

// Close sends the spans that wait.
func (t *Traces) Close(log *slog.Logger) {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		log.Warn("could not send the last traces", "error", err)
	}
}

// Tracer returns the tracer for the server, or nil without Traces.
func (t *Traces) Tracer() commands.Tracer {
	if t == nil {
		return nil
	}
	return t
}

// OnEntry returns the function that receives log entries, or nil without Traces.
func (t *Traces) OnEntry() func(raftstore.Entry) {
	if t == nil {
		return nil
	}
	return t.Entry
}

// Picks returns true for one call of every t.every.
func (t *Traces) Picks() bool { return t.reads.Add(1)%t.every == 0 }

// Trace makes four spans: the whole trace, and below it read, decide and reply.
func (t *Traces) Trace(r commands.Trace) {
	ctx, all := t.span(context.Background(), "decisions", r.Read,
		attribute.String("weir.command", r.Command), attribute.Int("weir.commands", r.Commands))
	t.part(ctx, "read", r.Read, r.Decide)
	t.part(ctx, "decide", r.Decide, r.Decided)
	t.part(ctx, "reply", r.Decided, r.Replied)
	finish(all, r.Replied, r.Err)
}

// Entry makes three spans for one of every t.every entries: the whole entry, and below it propose and commit. propose
// lasts while the entry gathers operations. commit lasts until a majority has the entry and it is applied.
func (t *Traces) Entry(e raftstore.Entry) {
	if t.entries.Add(1)%t.every != 0 {
		return
	}
	ctx, all := t.span(context.Background(), "entry", e.Begun, attribute.Int("weir.operations", e.Ops))
	t.part(ctx, "propose", e.Begun, e.Proposed)
	t.part(ctx, "commit", e.Proposed, e.Answered)
	finish(all, e.Answered, e.Err)
}

func (t *Traces) span(ctx context.Context, name string, from time.Time, about ...attribute.KeyValue) (context.Context,
	trace.Span) {
	return t.spans.Start(ctx, name, trace.WithTimestamp(from), trace.WithAttributes(about...),
		trace.WithSpanKind(trace.SpanKindServer))
}

func (t *Traces) part(ctx context.Context, name string, from, to time.Time) {
	_, span := t.spans.Start(ctx, name, trace.WithTimestamp(from))
	finish(span, to, nil)
}

func finish(span trace.Span, at time.Time, err error) {
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
	}
	span.End(trace.WithTimestamp(at))
}
