package envoyrls

import (
	"context"
	"crypto/tls"
	"net"
	"runtime/debug"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	grpcpeer "google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/weir-project/weir/internal/rlspb"
	"github.com/weir-project/weir/server/service"
)

// The limits of the rate limit service.
const (
	// MaxConns bounds connections: each worker of an Envoy keeps one.
	MaxConns = 512
	// rlsMaxStreams bounds the calls of one connection that wait for their answers. Envoy
	// opens another connection beyond it.
	rlsMaxStreams = 64
	// MaxCallBytes bounds a call: what an Envoy sends is what it read of one request's
	// headers, which it bounds by 60 KiB itself.
	MaxCallBytes = 128 << 10
	// rlsHeaderBytes bounds a call's metadata, of which weir reads the authorization.
	rlsHeaderBytes = 8 << 10
	// MaxDescriptors bounds the decisions of one call; Envoys ask for a few.
	MaxDescriptors = 64
	// rlsIdleTimeout ends connections that ask nothing. Envoy connects again by itself.
	rlsIdleTimeout = 10 * time.Minute
	// rlsHandshakeTimeout bounds a TLS handshake: a few round trips.
	rlsHandshakeTimeout = 5 * time.Second
	// rlsPingEvery finds Envoys that vanished without a word, as keep-alive does on the
	// port for Redis clients.
	rlsPingEvery = 300 * time.Second
)

// ServiceName is the name by which Envoys call.
const ServiceName = "envoy.service.ratelimit.v3.RateLimitService"

// Server answers Envoys beside a Server: their rate limit service, version 3, over gRPC. See
// docs/http.md.
type Server struct {
	*service.Service
	grpc  *grpc.Server
	Conns *rlsConns
	known bool // who connects has shown a certificate
}

// New returns the rate limit service of s; a nil config is no TLS. Where config
// requires certificates, these stand in for a password in protected mode.
func New(s *service.Service, config *tls.Config) *Server {
	r := &Server{Service: s, Conns: newRLSConns(MaxConns, &s.RLS, &s.Wire.EvictedRLS)}
	options := []grpc.ServerOption{
		grpc.MaxConcurrentStreams(rlsMaxStreams),
		grpc.MaxRecvMsgSize(MaxCallBytes),
		grpc.MaxHeaderListSize(rlsHeaderBytes),
		grpc.ConnectionTimeout(rlsHandshakeTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: rlsIdleTimeout, Time: rlsPingEvery}),
		grpc.StatsHandler(rlsTags{r.Conns}),
		grpc.WaitForHandlers(true), // none reaches the limiter behind Shutdown
	}
	if config != nil {
		r.known = config.ClientAuth == tls.RequireAndVerifyClientCert
		options = append(options, grpc.Creds(credentials.NewTLS(config)))
	}
	r.grpc = grpc.NewServer(options...)
	r.grpc.RegisterService(&grpc.ServiceDesc{
		ServiceName: ServiceName,
		HandlerType: (*any)(nil),
		Methods:     []grpc.MethodDesc{{MethodName: "ShouldRateLimit", Handler: shouldRateLimit}},
	}, r)
	return r
}

// Serve answers calls from ln, which it takes over, until Shutdown, and returns nil then.
func (r *Server) Serve(ln net.Listener) error {
	return r.grpc.Serve(&rlsListener{Listener: ln, Service: r.Service, conns: r.Conns, known: r.known})
}

// Shutdown takes no more calls and waits for those under way, not longer than ctx. When it
// returns no call reaches the limiter any more.
func (r *Server) Shutdown(ctx context.Context) {
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
	return self.(*Server).Answer(ctx, in)
}

// Answer decides, and counts what it said.
func (r *Server) Answer(ctx context.Context, in *rlspb.Request) (out *rlspb.Response, err error) {
	stats := &r.RLS
	defer func() {
		if p := recover(); p != nil {
			r.Wire.Panics.Add(1)
			r.Log.Error("panic while answering an Envoy", "panic", p, "stack", string(debug.Stack()))
			out, err = nil, status.Error(codes.Internal, "internal error")
		}
		switch {
		case err != nil:
			stats.Failed.Add(1)
		case out.OverallCode == rlspb.Code_OVER_LIMIT:
			stats.OverLimit.Add(1)
		default:
			stats.OK.Add(1)
		}
	}()
	addr, credentials := senderOf(ctx)
	u, err := r.Authenticate(addr, credentials, service.LoginMemoryOf(ctx))
	if err != nil {
		return nil, status.Error(codes.Unauthenticated, service.ErrorText(err))
	}
	defer inFlight(ctx)()
	q, err := readRequest(in)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, service.ErrorText(err))
	}
	for i := range q.Ops {
		if err := r.MayCheck(u, &q.Ops[i]); err != nil {
			return nil, status.Error(codes.PermissionDenied, service.ErrorText(err))
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
func (r *Server) decide(q *rlsRequest, addr string) (*rlspb.Response, error) {
	for i := range q.Ops {
		r.ShowCheck(addr, q.names[i], &q.Ops[i])
	}
	if err := r.DecideChecks(addr, q.Ops, q.ds); err != nil {
		return nil, rlsError(err)
	}
	out, err := q.response(r)
	if err != nil {
		r.CheckFailed(err)
		return nil, rlsError(err)
	}
	return out, nil
}

// rlsError says whether a caller may ask again: UNKNOWN may have been counted.
func rlsError(err error) error {
	text, code := service.ErrorText(err), codes.Unavailable
	if strings.HasPrefix(text, "UNKNOWN") {
		code = codes.Unknown
	}
	return status.Error(code, text)
}
