package grpclimit

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/client/internal/keys"
	"github.com/weir-project/weir/client/internal/quota"
	"github.com/weir-project/weir/httpfields"
)

// Limiter provides the interceptors.
type Limiter struct {
	client   *client.Client
	teller   quota.Teller
	methods  map[string]*Method // by Method.Name; nil: excluded
	fields   httpfields.Style
	decided  func(ctx context.Context, method, key string, d client.Decision)
	log      *slog.Logger
	loggedAt atomic.Int64 // Unix seconds
}

// Unary limits unary calls. It is a grpc.UnaryServerInterceptor.
func (l *Limiter) Unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if err := l.admit(ctx, info.FullMethod, func(md metadata.MD) error { return grpc.SetHeader(ctx, md) }); err != nil {
		return nil, err
	}
	return next(ctx, req)
}

// Stream limits streams when they begin. It is a grpc.StreamServerInterceptor.
func (l *Limiter) Stream(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if err := l.admit(s.Context(), info.FullMethod, s.SetHeader); err != nil {
		return err
	}
	return next(srv, s)
}

// methodOf returns the Method of a call, or nil if the call is not limited.
func (l *Limiter) methodOf(full string) *Method {
	service := full[:strings.LastIndexByte(full, '/')+1]
	for _, name := range [...]string{full, service, "/"} {
		if m, there := l.methods[name]; there {
			return m
		}
	}
	return nil
}

// admit returns nil for a call that may proceed, and otherwise the error of the call. It delays an admitted call by
// the delay of its decision.
func (l *Limiter) admit(ctx context.Context, full string, setHeader func(metadata.MD) error) error {
	m := l.methodOf(full)
	if m == nil {
		return nil
	}
	key, name := cmp.Or(m.Key(ctx), keys.Anonymous), m.Name
	if m.Rule.IsPolicy() {
		name = m.Rule.Name()
	} else {
		key = m.Name + "|" + key
	}
	request := client.Request{Rule: m.Rule, Key: key}
	d, err := l.client.Decide(ctx, request)
	if err != nil {
		return l.undecided(ctx, name, err)
	}
	if l.decided != nil {
		l.decided(ctx, name, key, d)
	}
	q := l.teller.Of(ctx, name, m.Rule.Window(), &request, &d)
	_ = setHeader(fieldsOf(&q, l.fields)) // fails if headers were sent already; then the fields are lost
	if !d.Allowed {
		return denied(&d, q.Detail())
	}
	return delay(ctx, d.RetryAfter)
}

// denied returns the status of a denial.
func denied(d *client.Decision, detail string) error {
	code := codes.ResourceExhausted
	switch d.Source {
	case client.FromFallback:
		code = codes.Unavailable
	case client.FromBusy:
		code, detail = codes.Unavailable, "the limit of this call could not be checked in time"
	}
	st := status.New(code, detail)
	if d.RetryAfter == client.Never {
		return st.Err()
	}
	with, err := st.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(d.RetryAfter)})
	if err != nil {
		return st.Err()
	}
	return with.Err()
}

// undecided returns the status of a call for which weir refuses a decision. The call never proceeds, because a
// mistake in the configuration must not switch the limits off.
func (l *Limiter) undecided(ctx context.Context, name string, err error) error {
	if ended := ctx.Err(); ended != nil {
		return status.FromContextError(ended).Err()
	}
	if now := time.Now().Unix(); l.loggedAt.Swap(now) != now {
		l.log.Error("a call could not be limited", "method", name, "error", err)
	}
	return status.Error(codes.Unavailable, "the limit of this call could not be checked")
}

// delay waits for d, the delay of an admitted call. It returns the call's error if the call ends first.
func delay(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}

func fieldsOf(q *httpfields.Quota, style httpfields.Style) metadata.MD {
	h := http.Header{}
	q.Set(h, style, time.Now())
	md := make(metadata.MD, len(h))
	for name, values := range h {
		md[strings.ToLower(name)] = values
	}
	return md
}
