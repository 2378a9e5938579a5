package server

import (
	"context"
	"crypto/tls"
	"net"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	grpcpeer "google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/weir-project/weir/internal/rlspb"
)

// The limits of the rate limit service.
const (
	// RLSMaxConns bounds connections: each worker of an Envoy keeps one.
	RLSMaxConns = 512
	// rlsMaxStreams bounds the calls of one connection that wait for their answers. Envoy
	// opens another connection beyond it.
	rlsMaxStreams = 64
	// rlsMaxBytes bounds a call: what an Envoy sends is what it read of one request's
	// headers, which it bounds by 60 KiB itself.
	rlsMaxBytes = 128 << 10
	// rlsHeaderBytes bounds a call's metadata, of which weir reads the authorization.
	rlsHeaderBytes = 8 << 10
	// rlsMaxDescriptors bounds the decisions of one call; Envoys ask for a few.
	rlsMaxDescriptors = 64
	// rlsIdleTimeout ends connections that ask nothing. Envoy connects again by itself.
	rlsIdleTimeout = 10 * time.Minute
	// rlsHandshakeTimeout bounds a TLS handshake: a few round trips.
	rlsHandshakeTimeout = 5 * time.Second
	// rlsPingEvery finds Envoys that vanished without a word, as keep-alive does on the
	// port for Redis clients.
	rlsPingEvery = 300 * time.Second
)

// rlsService is the name by which Envoys call.
const rlsService = "envoy.service.ratelimit.v3.RateLimitService"

// RLS answers Envoys beside a Server: their rate limit service, version 3, over gRPC. See
// docs/http.md.
type RLS struct {
	*service
	grpc  *grpc.Server
	conns *rlsConns
	known bool // who connects has shown a certificate
}

// rlsStats counts what Envoys were told.
type rlsStats struct {
	conns                 atomic.Int64 // open
	ok, overLimit, failed atomic.Int64 // calls
	descriptors           outcomes
	unmatched             atomic.Int64 // descriptors without a policy
}

// NewRLS returns the rate limit service of s; a nil config is no TLS. Where config
// requires certificates, these stand in for a password in protected mode.
func newRLS(s *service, config *tls.Config) *RLS {
	r := &RLS{service: s, conns: newRLSConns(RLSMaxConns, &s.rls, &s.wire.EvictedRLS)}
	options := []grpc.ServerOption{
		grpc.MaxConcurrentStreams(rlsMaxStreams),
		grpc.MaxRecvMsgSize(rlsMaxBytes),
		grpc.MaxHeaderListSize(rlsHeaderBytes),
		grpc.ConnectionTimeout(rlsHandshakeTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: rlsIdleTimeout, Time: rlsPingEvery}),
		grpc.StatsHandler(rlsTags{r.conns}),
		grpc.WaitForHandlers(true), // none reaches the limiter behind Shutdown
	}
	if config != nil {
		r.known = config.ClientAuth == tls.RequireAndVerifyClientCert
		options = append(options, grpc.Creds(credentials.NewTLS(config)))
	}
	r.grpc = grpc.NewServer(options...)
	r.grpc.RegisterService(&grpc.ServiceDesc{
		ServiceName: rlsService,
		HandlerType: (*any)(nil),
		Methods:     []grpc.MethodDesc{{MethodName: "ShouldRateLimit", Handler: shouldRateLimit}},
	}, r)
	return r
}

// Serve answers calls from ln, which it takes over, until Shutdown, and returns nil then.
func (r *RLS) Serve(ln net.Listener) error {
	return r.grpc.Serve(&rlsListener{Listener: ln, service: r.service, conns: r.conns, known: r.known})
}

// Shutdown takes no more calls and waits for those under way, not longer than ctx. When it
// returns no call reaches the limiter any more.
func (r *RLS) Shutdown(ctx context.Context) {
	cut := context.AfterFunc(ctx, r.grpc.Stop)
	defer cut()
	r.grpc.GracefulStop()
}

// shouldRateLimit is the service's only method, as package grpc calls it.
func shouldRateLimit(self any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	in := new(rlspb.Request)
	if err := decode(in); err != nil {
		return nil, err
	}
	return self.(*RLS).answer(ctx, in)
}

// answer decides, and counts what it said.
func (r *RLS) answer(ctx context.Context, in *rlspb.Request) (out *rlspb.Response, err error) {
	stats := &r.rls
	defer func() {
		if p := recover(); p != nil {
			r.wire.Panics.Add(1)
			r.log.Error("panic while answering an Envoy", "panic", p, "stack", string(debug.Stack()))
			out, err = nil, status.Error(codes.Internal, "internal error")
		}
		switch {
		case err != nil:
			stats.failed.Add(1)
		case out.OverallCode == rlspb.Code_OVER_LIMIT:
			stats.overLimit.Add(1)
		default:
			stats.ok.Add(1)
		}
	}()
	addr, credentials := senderOf(ctx)
	u, err := r.authenticate(addr, credentials, loginMemoryOf(ctx))
	if err != nil {
		return nil, status.Error(codes.Unauthenticated, errorText(err))
	}
	defer inFlight(ctx)()
	q, err := readRLS(in)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, errorText(err))
	}
	for i := range q.ops {
		if err := r.mayCheck(u, &q.ops[i]); err != nil {
			return nil, status.Error(codes.PermissionDenied, errorText(err))
		}
	}
	return r.decide(q, addr)
}

// senderOf is who sent a call: the address, and the header that says who that is.
func senderOf(ctx context.Context) (addr, credentials string) {
	if p, ok := grpcpeer.FromContext(ctx); ok {
		addr = p.Addr.String()
	}
	if given := metadata.ValueFromIncomingContext(ctx, "authorization"); len(given) > 0 {
		credentials = given[0]
	}
	return addr, credentials
}

// decide asks the limiter once.
func (r *RLS) decide(q *rlsRequest, addr string) (*rlspb.Response, error) {
	for i := range q.ops {
		r.heed(addr, q.names[i], &q.ops[i])
	}
	if err := r.decideChecks(addr, q.ops, q.ds); err != nil {
		return nil, rlsError(err)
	}
	out, err := q.response(r)
	if err != nil {
		r.checkFailed(err)
		return nil, rlsError(err)
	}
	return out, nil
}

// rlsError says whether a caller may ask again: UNKNOWN may have been counted.
func rlsError(err error) error {
	text, code := errorText(err), codes.Unavailable
	if strings.HasPrefix(text, "UNKNOWN") {
		code = codes.Unknown
	}
	return status.Error(code, text)
}
