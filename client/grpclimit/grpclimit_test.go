package grpclimit_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/client/grpclimit"
	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/weirtest"
	"github.com/weir-project/weir/limiter"
)

const (
	check = grpc_health_v1.Health_Check_FullMethodName
	watch = grpc_health_v1.Health_Watch_FullMethodName
)

func newClient(t *testing.T, s *weirtest.Server, down client.Fallback) *client.Client {
	c, err := client.New(s.Redis(), client.Options{WhenDown: down, Timeout: 10 * time.Second,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// serve serves gRPC's own health service with the limits of o.
func serve(t *testing.T, c *client.Client, o grpclimit.Options) grpc_health_v1.HealthClient {
	o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	limit, err := grpclimit.New(c, o)
	require.NoError(t, err)
	srv := grpc.NewServer(grpc.UnaryInterceptor(limit.Unary), grpc.StreamInterceptor(limit.Stream))
	grpc_health_v1.RegisterHealthServer(srv, health.NewServer())
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(ln) }()
	conn, err := grpc.NewClient(ln.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, conn.Close())
		srv.Stop()
		if err := <-ended; err != grpc.ErrServerStopped { // Stop may come before Serve
			require.NoError(t, err)
		}
	})
	return grpc_health_v1.NewHealthClient(conn)
}

// TestBusyIsRefused checks that no call passes while weir is busy, whatever decides in an outage.
func TestBusyIsRefused(t *testing.T) {
	s := weirtest.Start(t)
	s.Instead(func([]engine.Op) (bool, error) { return false, limiter.ErrOverloaded })
	for _, fallback := range []client.Fallback{client.Open, client.Closed, client.Local} {
		api := serve(t, newClient(t, s, fallback), grpclimit.Options{
			Methods: []grpclimit.Method{
				{Name: check, Rule: client.FixedFirst(time.Minute, 1), Key: grpclimit.ByPeer()},
			},
		})
		_, err := api.Check(t.Context(), nil)
		st := status.Convert(err)
		require.Equal(t, codes.Unavailable, st.Code())
		require.Contains(t, st.Message(), "could not be checked in time")
		require.Len(t, st.Details(), 1)
		require.Equal(t, time.Second, st.Details()[0].(*errdetails.RetryInfo).RetryDelay.AsDuration())
	}
}

func TestCalls(t *testing.T) {
	s := weirtest.Start(t)
	api := serve(t, newClient(t, s, client.Closed), grpclimit.Options{
		Methods: []grpclimit.Method{{Name: check, Rule: client.FixedFirst(time.Minute, 1), Key: grpclimit.ByPeer()}},
	})
	var head metadata.MD
	_, err := api.Check(t.Context(), nil, grpc.Header(&head))
	require.NoError(t, err)
	require.Equal(t, []string{`"` + check + `";r=0;t=60`}, head.Get("ratelimit"))
	require.Equal(t, []string{"60"}, head.Get("x-ratelimit-reset"))
	_, err = api.Check(t.Context(), nil, grpc.Header(&head))
	st := status.Convert(err)
	require.Equal(t, codes.ResourceExhausted, st.Code())
	require.Equal(t, "Rate limit exceeded. Try again in 60 seconds.", st.Message())
	require.Equal(t, time.Minute, st.Details()[0].(*errdetails.RetryInfo).RetryDelay.AsDuration())
	require.Equal(t, []string{"60"}, head.Get("retry-after"))
}

// TestReasonForNever checks that a call that a block without end denies is not said to ask for too much.
func TestReasonForNever(t *testing.T) {
	s := weirtest.Start(t)
	c := newClient(t, s, client.Closed)
	api := serve(t, c, grpclimit.Options{
		Methods: []grpclimit.Method{{Name: check, Rule: client.FixedFirst(time.Minute, 1), Key: grpclimit.ByMethod()}},
	})
	require.NoError(t, c.Block(t.Context(), check+"|method", client.Never, ""))
	_, err := api.Check(t.Context(), nil)
	st := status.Convert(err)
	require.Equal(t, codes.ResourceExhausted, st.Code())
	require.Equal(t, "Rate limit exceeded. The client is blocked until the block is lifted.", st.Message())
	require.Empty(t, st.Details())
}

func TestStreamsAndKeys(t *testing.T) {
	s := weirtest.Start(t)
	api := serve(t, newClient(t, s, client.Closed), grpclimit.Options{
		Methods: []grpclimit.Method{{Name: "/", Rule: client.FixedFirst(time.Hour, 1),
			Key: grpclimit.FirstOf(grpclimit.BySecret("authorization"), grpclimit.ByMetadata("tenant"))}},
		Exclude: []string{check},
	})
	stream := func(pairs ...string) codes.Code {
		ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(t.Context(), pairs...))
		defer cancel()
		w, err := api.Watch(ctx, nil)
		require.NoError(t, err)
		_, err = w.Recv()
		return status.Code(err)
	}
	require.Equal(t, codes.OK, stream("tenant", "a"))
	require.Equal(t, codes.ResourceExhausted, stream("tenant", "a"))
	require.Equal(t, codes.OK, stream("tenant", strings.Repeat("b", 4<<10)))
	require.Equal(t, codes.OK, stream("authorization", "Bearer s", "tenant", "a"))
	require.Equal(t, codes.OK, stream(), "the first caller without a key must be admitted")
	require.Equal(t, codes.ResourceExhausted, stream(), "the shared limit must deny this caller")
	for range 3 {
		_, err := api.Check(t.Context(), nil)
		require.NoError(t, err, "an excluded method must not be limited")
	}
}

func TestWithoutWeir(t *testing.T) {
	s := weirtest.Start(t)
	methods := []grpclimit.Method{{Name: "/grpc.health.v1.Health/", Rule: client.Policy("none"),
		Key: grpclimit.ByMethod()}}
	api := serve(t, newClient(t, s, client.Open), grpclimit.Options{Methods: methods})
	_, err := api.Check(t.Context(), nil)
	require.Equal(t, codes.Unavailable, status.Code(err), "a wrong configuration must not switch limits off")
	api = serve(t, newClient(t, s, client.Closed), grpclimit.Options{Methods: methods})
	s.Stop()
	_, err = api.Check(t.Context(), nil)
	require.Equal(t, codes.Unavailable, status.Code(err))
	require.Len(t, status.Convert(err).Details(), 1)
}

func TestBadOptions(t *testing.T) {
	c, rule := newClient(t, weirtest.Start(t), client.Open), client.Fixed(time.Hour, 1)
	method := func(name string) []grpclimit.Method {
		return []grpclimit.Method{{Name: name, Rule: rule, Key: grpclimit.ByPeer()}}
	}
	for name, o := range map[string]grpclimit.Options{
		"none": {}, "no slash": {Methods: method("shop.Orders/Create")},
		"no service": {Methods: method("/shop.Orders")},
		"too deep":   {Methods: method("/a/b/c")}, "twice": {Methods: append(method(check), method(check)...)},
		"excluded":      {Methods: method(watch), Exclude: []string{watch}},
		"no key":        {Methods: []grpclimit.Method{{Name: "/", Rule: rule}}},
		"star":          {Methods: method("/shop.Orders/*")},
		"star excluded": {Methods: method("/"), Exclude: []string{"/*/Create"}},
		"empty service": {Methods: method("//Create")}, "query": {Methods: method("/shop.Orders/Create?x")},
		"blank":    {Methods: method("/shop.Orders/Create ")},
		"bad rule": {Methods: []grpclimit.Method{{Name: "/", Rule: client.Fixed(0, 1), Key: grpclimit.ByPeer()}}},
	} {
		_, err := grpclimit.New(c, o)
		require.ErrorIs(t, err, grpclimit.ErrBadOptions, name)
	}
}
