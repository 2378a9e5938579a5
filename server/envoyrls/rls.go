package envoyrls

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	grpcpeer "google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/rlspb"
	"github.com/weir-project/weir/server/acl"
	"github.com/weir-project/weir/server/envoyrls/rules"
	"github.com/weir-project/weir/server/service"
)

// Limits of the rate limit service.
const (
	// MaxConns bounds the connections. Each worker of an Envoy keeps one.
	MaxConns = 512
	// rlsMaxStreams bounds the concurrent calls of one connection. Envoy opens another connection for more.
	rlsMaxStreams = 64
	// MaxCallBytes bounds a call. Envoy sends data from the headers of one request, which it bounds to 60 KiB itself.
	MaxCallBytes = 128 << 10
	// rlsHeaderBytes bounds a call's metadata, of which weir reads the authorization.
	rlsHeaderBytes = 8 << 10
	// MaxDescriptors bounds the decisions of one call. Envoy usually sends a few.
	MaxDescriptors = 64
	// rlsWorkers decide calls with stacks that have grown already. Further calls get new goroutines.
	rlsWorkers = 64
	// rlsWindow bounds the data of a connection in flight. Package grpc would ping a client during calls to find a
	// greater window, which only long messages need.
	rlsWindow = 64 << 10
	// rlsIdleTimeout closes idle connections. Envoy reconnects by itself.
	rlsIdleTimeout = 10 * time.Minute
	// rlsHandshakeTimeout bounds a TLS handshake: a few round trips.
	rlsHandshakeTimeout = 5 * time.Second
	// rlsPingEvery detects an Envoy that disappeared, as keep-alive does on the port for Redis clients.
	rlsPingEvery = 300 * time.Second
)

// ServiceName is the gRPC name of the service.
const ServiceName = "envoy.service.ratelimit.v3.RateLimitService"

// Server implements Envoy's rate limit service, version 3, over gRPC. See docs/http.md.
type Server struct {
	*service.Service
	grpc  func() *grpc.Server // starts its workers at the first call
	Conns *rlsConns
	known bool // clients present a certificate

	config atomic.Pointer[rules.Config]
	fields atomic.Bool
	awaits atomic.Bool
	ready  func() bool // nil: always
}

// SetConfig replaces the configuration: calls from now on follow c. The domains that c does not have follow policies.
// A nil c has no domains. A limit that stays under the same descriptor with the same unit keeps its counts.
func (r *Server) SetConfig(c *rules.Config) {
	r.config.Store(c)
	r.awaits.Store(false)
}

// AwaitConfig makes calls fail until SetConfig. Without it they would pass while the limits are on their way.
func (r *Server) AwaitConfig() { r.awaits.Store(true) }

// SendFields decides whether answers in the domains of the configuration have response header fields.
func (r *Server) SendFields(on bool) { r.fields.Store(on) }

// New returns the rate limit service of s. A nil config means no TLS. If config requires client certificates, protected
// mode requires no password of the clients.
func New(s *service.Service, config *tls.Config) *Server {
	r := &Server{Service: s, Conns: newRLSConns(MaxConns, &s.RLS, &s.Wire.EvictedRLS)}
	options := []grpc.ServerOption{
		grpc.MaxConcurrentStreams(rlsMaxStreams),
		grpc.MaxRecvMsgSize(MaxCallBytes),
		grpc.MaxHeaderListSize(rlsHeaderBytes),
		grpc.ConnectionTimeout(rlsHandshakeTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: rlsIdleTimeout, Time: rlsPingEvery}),
		grpc.NumStreamWorkers(rlsWorkers),
		grpc.StaticStreamWindowSize(rlsWindow),
		grpc.WaitForHandlers(true), // no handler reaches the limiter after Shutdown
	}
	if config != nil {
		r.known = config.ClientAuth == tls.RequireAndVerifyClientCert
		options = append(options, grpc.Creds(credentials.NewTLS(config)))
	}
	r.grpc = sync.OnceValue(func() *grpc.Server { return r.register(grpc.NewServer(options...)) })
	return r
}

// register adds the services to a server, and returns it.
func (r *Server) register(s *grpc.Server) *grpc.Server {
	add := func(service string, methods ...grpc.MethodDesc) {
		s.RegisterService(&grpc.ServiceDesc{ServiceName: service, HandlerType: (*any)(nil), Methods: methods}, r)
	}
	healthpb.RegisterHealthServer(s, health{of: r})
	add(ServiceName, grpc.MethodDesc{MethodName: "ShouldRateLimit", Handler: handler(takes)})
	add(KuadrantName, grpc.MethodDesc{MethodName: "CheckRateLimit", Handler: handler(looks)},
		grpc.MethodDesc{MethodName: "Report", Handler: handler(reports)})
	return s
}

// Serve answers calls from ln until Shutdown, and then returns nil, also if Shutdown came first. It owns ln.
func (r *Server) Serve(ln net.Listener) error {
	err := r.grpc().Serve(&rlsListener{Listener: ln, Service: r.Service, conns: r.Conns, known: r.known})
	if errors.Is(err, grpc.ErrServerStopped) {
		return nil
	}
	return err
}

// Shutdown accepts no further calls and waits for running ones until ctx ends. When it returns, no call reaches the
// limiter.
func (r *Server) Shutdown(ctx context.Context) {
	s := r.grpc()
	cut := context.AfterFunc(ctx, s.Stop)
	defer cut()
	s.GracefulStop()
}

// handler adapts a method to package grpc.
func handler(m method) grpc.MethodHandler {
	return func(self any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		in := new(rlspb.Request)
		if err := decode(in); err != nil {
			return nil, err
		}
		return self.(*Server).answer(ctx, in, m)
	}
}

// AnswerUser decides a call of ShouldRateLimit and counts the answer. A nil user may ask everything.
func (r *Server) AnswerUser(u *acl.User, addr string, in *rlspb.Request) (out *rlspb.Response, err error) {
	defer r.count(&out, &err)
	return r.decide(u, addr, in, takes)
}

// answer decides a call of a method and counts the answer.
func (r *Server) answer(ctx context.Context, in *rlspb.Request, m method) (out *rlspb.Response, err error) {
	defer r.count(&out, &err)
	from, login, cert := senderOf(ctx)
	u, err := r.Authenticate(from.text, login, cert, from.login)
	if err != nil {
		return nil, status.Error(codes.Unauthenticated, service.ErrorText(err))
	}
	from.conn.Slot.Begin() // exempt from eviction during the call
	defer from.conn.Slot.End()
	return r.decide(u, from.text, in, m)
}

// count counts an answer, and makes a panic of its caller one. Call it deferred.
func (r *Server) count(out **rlspb.Response, err *error) {
	if p := recover(); p != nil {
		r.Wire.Panics.Add(1)
		r.Log.Error("panic while serving an Envoy", "panic", p, "stack", string(debug.Stack()))
		*out, *err = nil, status.Error(codes.Internal, "internal error")
	}
	switch {
	case *err != nil:
		r.RLS.Failed.Add(1)
	case (*out).OverallCode == rlspb.Code_OVER_LIMIT:
		r.RLS.OverLimit.Add(1)
	default:
		r.RLS.OK.Add(1)
	}
}

// decide decides a call of a user, who may be nil.
func (r *Server) decide(u *acl.User, addr string, in *rlspb.Request, m method) (*rlspb.Response, error) {
	if r.awaits.Load() {
		return nil, status.Error(codes.Unavailable, "TRYAGAIN the control plane has sent no limits yet")
	}
	q, err := r.read(in)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, service.ErrorText(err))
	}
	ops := q.operations()
	for i := range ops {
		m.change(&ops[i])
		if u == nil {
			continue
		}
		if err := r.MayCheck(u, &ops[i]); err != nil {
			return nil, status.Error(codes.PermissionDenied, service.ErrorText(err))
		}
	}
	out, err := q.decide(r, addr)
	if err == nil && m == reports {
		out = &rlspb.Response{OverallCode: rlspb.Code_OK} // the request is over
	}
	return out, err
}

// call is a call that was read, under policies or under the configuration.
type call interface {
	operations() []engine.Op
	decide(r *Server, addr string) (*rlspb.Response, error)
}

func (r *Server) read(in *rlspb.Request) (call, error) {
	if err := checkRequest(in); err != nil {
		return nil, err
	}
	if d := r.config.Load().Domain(in.Domain); d != nil {
		return readLimits(in, d)
	}
	return readRequest(in)
}

// senderOf returns the client, the authorization header and the certificate of a call.
func senderOf(ctx context.Context) (from *sender, login string, cert *x509.Certificate) {
	p, _ := grpcpeer.FromContext(ctx)
	if secure, ok := p.AuthInfo.(credentials.TLSInfo); ok && len(secure.State.PeerCertificates) > 0 {
		cert = secure.State.PeerCertificates[0]
	}
	if given := metadata.ValueFromIncomingContext(ctx, "authorization"); len(given) > 0 {
		login = given[0]
	}
	return p.Addr.(*sender), login, cert
}

func (q *rlsRequest) operations() []engine.Op { return q.Ops }

// decide decides all descriptors in one call of the limiter.
func (q *rlsRequest) decide(r *Server, addr string) (*rlspb.Response, error) {
	for i := range q.Ops {
		r.ShowCheck(addr, q.names[i], &q.Ops[i])
	}
	if err := r.DecideShadowed(addr, q.Ops, q.ds, func(i int) bool { return q.Ops[i].Partial }); err != nil {
		return nil, rlsError(err)
	}
	out, err := q.response(r)
	if err != nil {
		r.CheckFailed(err)
		return nil, rlsError(err)
	}
	return out, nil
}

// rlsError maps an error to a status that tells whether a retry is safe. After UNKNOWN the request may have been
// counted.
func rlsError(err error) error {
	text, code := service.ErrorText(err), codes.Unavailable
	if strings.HasPrefix(text, "UNKNOWN") {
		code = codes.Unknown
	}
	return status.Error(code, text)
}
