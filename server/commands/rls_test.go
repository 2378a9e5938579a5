package commands

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weir-project/weir/internal/rlspb"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/acl"
	"github.com/weir-project/weir/server/envoyrls"
	"github.com/weir-project/weir/server/servertest"
)

// serveRLS serves the rate limit service of s, and returns Envoy's own generated client.
func serveRLS(t *testing.T, s *Shared) (*grpc.ClientConn, servertest.Envoy) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return serveRLSOn(t, s, ln)
}

func serveRLSOn(t *testing.T, s *Shared, ln net.Listener) (*grpc.ClientConn, servertest.Envoy) {
	beginRLS(t, s, ln)
	conn := dialRLS(t, ln.Addr().String())
	return conn, servertest.Envoy{Conn: conn}
}

// startRLS serves the rate limit service of s until the test ends.
func startRLS(t *testing.T, s *Shared) (r *envoyrls.Server, addr string) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return beginRLS(t, s, ln), ln.Addr().String()
}

func beginRLS(t *testing.T, s *Shared, ln net.Listener) *envoyrls.Server {
	r, ended := envoyrls.New(s.Service, nil), make(chan error, 1)
	go func() { ended <- r.Serve(ln) }()
	t.Cleanup(func() {
		r.Shutdown(context.Background())
		require.NoError(t, <-ended)
	})
	return r
}

func dialRLS(t *testing.T, addr string) *grpc.ClientConn {
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() }) // the test may have closed it already
	return conn
}

// entries returns a descriptor from alternating keys and values.
func entries(pairs ...string) *rlspb.Descriptor {
	d := new(rlspb.Descriptor)
	for i := 0; i < len(pairs); i += 2 {
		d.Entries = append(d.Entries, &rlspb.Entry{Key: []byte(pairs[i]), Value: []byte(pairs[i+1])})
	}
	return d
}

func withHits(d *rlspb.Descriptor, n uint64) *rlspb.Descriptor {
	d.HitsAddend = wrapperspb.UInt64(n)
	return d
}

func withLimit(d *rlspb.Descriptor, n uint32,
	unit rlspb.Unit) *rlspb.Descriptor {
	d.Limit = &rlspb.Override{RequestsPerUnit: n, Unit: unit}
	return d
}

func rlsCall(d ...*rlspb.Descriptor) *rlspb.Request {
	return &rlspb.Request{Domain: []byte("web"), Descriptors: d}
}

// limited returns a server with policies for Envoys.
func limited(t *testing.T, cfg Config) *testServer {
	s := newTestServer(t, cfg)
	c := s.client(t)
	if cfg.Password != "" {
		c.as(acl.DefaultUser, cfg.Password)
	}
	for _, command := range []string{
		"RL.POLICY SET web:login:remote_address LIMIT FIXED 1h 3",
		"RL.POLICY SET web:user LIMIT TOKENBUCKET 10/s 5",
		"RL.POLICY SET web:plan LIMIT FIXED DAY 100",
		"RL.POLICY OVERRIDE web:plan free LIMIT FIXED DAY 1",
		"RL.POLICY OVERRIDE web:plan gold UNLIMITED",
	} {
		require.NotContains(t, c.say(command), "ERR", command)
	}
	return s
}

func TestRLSAnswers(t *testing.T) {
	s := limited(t, Config{})
	_, envoy := serveRLS(t, s.Shared)
	ask := func(in *rlspb.Request) *rlspb.Response {
		out, err := envoy.ShouldRateLimit(t.Context(), in)
		require.NoError(t, err)
		require.Len(t, out.Statuses, len(in.Descriptors))
		return out
	}
	login := func() *rlspb.Descriptor {
		return entries("generic_key", "login", "remote_address", "192.0.2.7")
	}
	out := ask(rlsCall(entries("user", "42"), entries("nothing", "is known"), login()))
	require.Equal(t, rlspb.Code_OK, out.OverallCode)
	require.EqualValues(t, 4, out.Statuses[0].LimitRemaining)
	require.Equal(t, "web:user", out.Statuses[0].CurrentLimit.Name)
	require.Equal(t, rlspb.Unit_NONE, out.Statuses[0].CurrentLimit.Unit,
		"a bucket must not report a unit")
	require.Equal(t, time.Second, out.Statuses[0].DurationUntilReset.AsDuration())
	require.Equal(t, rlspb.Code_OK, out.Statuses[1].Code,
		"a descriptor without a policy must be admitted, as in Envoy's reference service")
	require.Nil(t, out.Statuses[1].CurrentLimit)
	require.EqualValues(t, 3, out.Statuses[2].CurrentLimit.RequestsPerUnit)
	require.Equal(t, rlspb.Unit_HOUR, out.Statuses[2].CurrentLimit.Unit)
	require.Equal(t, "Ratelimit: \"web:login:remote_address\";r=2;t=3600\nRatelimit-Policy: "+
		"\"web:login:remote_address\";q=3;w=3600\n", fields(out),
		"the limit with the least left must be reported")
	require.Empty(t, out.RawBody)

	// Each descriptor counts separately: one takes its units although the other is denied.
	in := rlsCall(entries("user", "42"), login())
	in.HitsAddend = 3
	out = ask(in)
	require.Equal(t, rlspb.Code_OVER_LIMIT, out.OverallCode)
	require.Equal(t, rlspb.Code_OK, out.Statuses[0].Code)
	require.EqualValues(t, 1, out.Statuses[0].LimitRemaining)
	require.Equal(t, rlspb.Code_OVER_LIMIT, out.Statuses[1].Code)
	require.EqualValues(t, 2, out.Statuses[1].LimitRemaining, "a denial must not take units")
	require.Equal(t, time.Hour, out.Statuses[1].DurationUntilReset.AsDuration())
	require.Contains(t, fields(out), "Retry-After: 3600\nContent-Type: application/problem+json\n")
	require.Contains(t, string(out.RawBody), `"violated-policies":["web:login:remote_address"]`)

	// A descriptor's own addend takes precedence, and 0 takes nothing.
	in = rlsCall(withHits(login(), 2), withHits(login(), 0))
	in.HitsAddend = 9
	out = ask(in)
	require.Equal(t, rlspb.Code_OK, out.Statuses[0].Code)
	require.EqualValues(t, 0, out.Statuses[1].LimitRemaining)
	require.Equal(t, rlspb.Code_OK, out.Statuses[1].Code, "an addend of 0 must be admitted")

	out = ask(rlsCall(entries("plan", "free"), entries("plan", "free"), entries("plan", "silver"),
		entries("plan", "gold")))
	require.Equal(t, []rlspb.Code{1, 2, 1, 1}, codesOf(out))
	require.Equal(t, rlspb.Unit_DAY, out.Statuses[1].CurrentLimit.Unit)
	require.Nil(t, out.Statuses[3].CurrentLimit, "an unlimited descriptor must report no limit")

	require.Equal(t, "OK", s.client(t).say("RL.BLOCK 666 1m"))
	out = ask(rlsCall(entries("user", "666")))
	require.Equal(t, rlspb.Code_OVER_LIMIT, out.OverallCode)
	require.Equal(t, time.Minute, out.Statuses[0].DurationUntilReset.AsDuration())

	for series, want := range map[string]string{
		`weir_rls_calls_total{result="ok"}`: "2", `weir_rls_calls_total{result="over_limit"}`: "3",
		`weir_rls_calls_total{result="failed"}`:        "0",
		`weir_rls_descriptors_total{result="allowed"}`: "7", `weir_rls_descriptors_total{result="limited"}`: "3",
		`weir_rls_descriptors_total{result="unmatched"}`:                 "1",
		`weir_policy_requests_total{policy="web:user",result="limited"}`: "1",
		`weir_rls_connections`: "1",
	} {
		require.Equal(t, want, value(t, s.Shared, series), series)
	}
}

func fields(out *rlspb.Response) string {
	var b strings.Builder
	for _, h := range out.ResponseHeadersToAdd {
		b.WriteString(h.Key + ": " + h.Value + "\n")
	}
	return b.String()
}

func codesOf(out *rlspb.Response) (all []rlspb.Code) {
	for _, s := range out.Statuses {
		all = append(all, s.Code)
	}
	return all
}

// TestRLSLimitsBroughtAlong checks a descriptor that carries its own limit. Envoy takes such a limit from its
// metadata.
func TestRLSLimitsBroughtAlong(t *testing.T) {
	s := limited(t, Config{})
	_, envoy := serveRLS(t, s.Shared)
	two := func(who string, n uint32, unit rlspb.Unit) *rlspb.Descriptor {
		return withLimit(entries("user", who), n, unit)
	}
	out, err := envoy.ShouldRateLimit(t.Context(), rlsCall(
		two("a", 1, rlspb.Unit_MINUTE), two("a", 1, rlspb.Unit_MINUTE),
		two("b", 1, rlspb.Unit_MONTH), two("c", 0, rlspb.Unit_DAY)))
	require.NoError(t, err)
	require.Equal(t, []rlspb.Code{1, 2, 1, 2}, codesOf(out))
	require.Zero(t, out.Statuses[3].CurrentLimit.RequestsPerUnit)
	require.Zero(t, out.Statuses[3].LimitRemaining)
	require.Equal(t, rlspb.Unit_MONTH, out.Statuses[2].CurrentLimit.Unit)
	require.Contains(t, s.client(t).raw("KEYS", "rls|*"), "rls|web:user|a")
	_, err = envoy.ShouldRateLimit(t.Context(), rlsCall(two("a", 1, rlspb.Unit_NONE)))
	require.Equal(t, codes.InvalidArgument, status.Code(err))
}

// TestRLSHostileValues checks that every value which a client can send gets an answer. Without an answer Envoy would
// let the request through.
func TestRLSHostileValues(t *testing.T) {
	s := limited(t, Config{})
	conn, _ := serveRLS(t, s.Shared)
	for _, value := range []string{"\xff\xfe", "policy|web:user|0|42", strings.Repeat("x", 60<<10),
		"a\x00b\r\n", "rls|", " "} {
		in := &rlspb.Request{Domain: []byte("web"),
			Descriptors: []*rlspb.Descriptor{{Entries: []*rlspb.Entry{{Key: []byte("user"), Value: []byte(value)}}}}}
		for i := range 6 {
			out := new(rlspb.Response)
			require.NoError(t, conn.Invoke(t.Context(), "/"+envoyrls.ServiceName+"/ShouldRateLimit", in, out),
				"%.20q", value)
			want := rlspb.Code_OK
			if i == 5 {
				want = rlspb.Code_OVER_LIMIT
			}
			require.Equal(t, want, out.OverallCode, "%.20q, %d", value, i)
		}
	}
}

func TestRLSRefuses(t *testing.T) {
	s := limited(t, Config{})
	_, envoy := serveRLS(t, s.Shared)
	refused := func(in *rlspb.Request) codes.Code {
		_, err := envoy.ShouldRateLimit(t.Context(), in)
		return status.Code(err)
	}
	require.Equal(t, codes.InvalidArgument,
		refused(&rlspb.Request{Descriptors: rlsCall(entries("user", "1")).Descriptors}))
	require.Equal(t, codes.InvalidArgument, refused(rlsCall()))
	many := make([]*rlspb.Descriptor, envoyrls.MaxDescriptors+1)
	for i := range many {
		many[i] = entries("user", "1")
	}
	require.Equal(t, codes.InvalidArgument, refused(rlsCall(many...)))
	require.Equal(t, codes.ResourceExhausted,
		refused(rlsCall(entries("user", strings.Repeat("x", envoyrls.MaxCallBytes)))))
	require.Equal(t, "0", s.client(t).say("DBSIZE"), "an error must not count")
	require.Equal(t, codes.OK, refused(rlsCall(entries("user", strings.Repeat("x", envoyrls.MaxCallBytes-100)))),
		"a call longer than the window of a connection")
	for err, want := range map[error]codes.Code{limiter.ErrTryAgain: codes.Unavailable,
		limiter.ErrClusterDown: codes.Unavailable, limiter.ErrUnknownOutcome: codes.Unknown} {
		s.lim.Err = err
		require.Equal(t, want, refused(rlsCall(entries("user", "1"))), err)
	}
	s.lim.Err = nil
	s.Draining.Store(true)
	require.Equal(t, codes.Unavailable, refused(rlsCall(entries("user", "1"))),
		"a shutdown must decide nothing after the last save")
	require.Equal(t, "7", value(t, s.Shared, `weir_rls_calls_total{result="failed"}`), "one was too long to be a call")
}
