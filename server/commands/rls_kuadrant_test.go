package commands

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weir-project/weir/internal/rlspb"
	"github.com/weir-project/weir/server/servertest"
)

// TestKuadrant checks a gateway that asks before a request, and reports afterwards what the request has used. Asking
// takes nothing. A report is never denied, and takes all units: a bucket of 10/s with 5 tokens goes into a debt of 24.
func TestKuadrant(t *testing.T) {
	s := limited(t, Config{})
	listener := s.client(t)
	listener.say("PSUBSCRIBE weir:denied:*")
	r, addr := startRLS(t, s.Shared)
	setConfig(t, r, "domain: shop\ndescriptors: [{key: user, rate_limit: {unit: hour, requests_per_unit: 5}}]")
	envoy := servertest.Envoy{Conn: dialRLS(t, addr)}
	for _, c := range []struct {
		domain    string
		limit     int
		remaining string // in the statuses of ShouldRateLimit without hits
	}{{"shop", 5, "OK 0 of 5/HOUR"}, {"web", 5, "OVER_LIMIT 0 of 5/NONE web:user for 3s"}} {
		call := func(hits uint32) *rlspb.Request {
			return &rlspb.Request{Domain: []byte(c.domain), HitsAddend: hits,
				Descriptors: []*rlspb.Descriptor{entries("user", "ann")}}
		}
		check := func() rlspb.Code {
			out, err := envoy.CheckRateLimit(t.Context(), call(100)) // a check ignores the hits
			require.NoError(t, err)
			return out.OverallCode
		}
		report := func(hits uint32) {
			out, err := envoy.Report(t.Context(), call(hits))
			require.NoError(t, err)
			require.Equal(t, rlspb.Code_OK, out.OverallCode)
			require.Empty(t, out.Statuses)
		}
		for range 2 * c.limit {
			require.Equal(t, rlspb.Code_OK, check(), "a check must take nothing")
		}
		report(0) // one hit
		report(3)
		require.Equal(t, rlspb.Code_OK, check(), "one of five is left")
		report(24)
		require.Equal(t, rlspb.Code_OVER_LIMIT, check())
		report(1)
		look := entries("user", "ann")
		withHits(look, 0)
		out, err := envoy.ShouldRateLimit(t.Context(), &rlspb.Request{Domain: []byte(c.domain),
			Descriptors: []*rlspb.Descriptor{look}})
		require.NoError(t, err)
		require.Contains(t, shownStatus(out.Statuses[0]), c.remaining)
	}
	require.Empty(t, listener.fake.messages(), "neither a check nor a report is a denied request")
	for series, want := range map[string]string{
		`weir_requests_total{command="rl.check",result="limited"}`:             "0",
		`weir_rls_calls_total{result="over_limit"}`:                            "3",
		`ratelimit_service_rate_limit_total_hits{domain="shop",key1="user"}`:   "29",
		`ratelimit_service_rate_limit_over_limit{domain="shop",key1="user"}`:   "24",
		`ratelimit_service_rate_limit_within_limit{domain="shop",key1="user"}`: "5",
	} {
		require.Equal(t, want, value(t, s.Shared, series), series)
	}
	_, err := envoy.Report(t.Context(), &rlspb.Request{Domain: []byte("web")})
	require.Equal(t, codes.InvalidArgument, status.Code(err))
}
