package commands

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/weir-project/weir/internal/rlspb"
	"github.com/weir-project/weir/server/envoyrls"
	"github.com/weir-project/weir/server/envoyrls/rules"
	"github.com/weir-project/weir/server/metrics"
	"github.com/weir-project/weir/server/servertest"
)

const shopLimits = `
domain: web
descriptors:
  - key: user
    rate_limit: {unit: minute, requests_per_unit: 5, name: per-user}
    descriptors:
      - {key: path, value: /pay, rate_limit: {unit: hour, requests_per_unit: 2, replaces: [{name: per-user}]}}
  - {key: user, value: root, rate_limit: {unlimited: true}}
  - {key: closed, rate_limit: {unit: day, requests_per_unit: 0}}
  - {key: tried, shadow_mode: true, rate_limit: {unit: second, requests_per_unit: 1}}
  - {key: quota, quota_mode: true, rate_limit: {unit: second, requests_per_unit: 1}}
  - {key: file, value: "img*", share_threshold: true, rate_limit: {unit: week, requests_per_unit: 2}}
  - {key: remote_address, detailed_metric: true, rate_limit: {unit: day, requests_per_unit: 1}}
`

// serveLimits serves the rate limit service of s with a configuration.
func serveLimits(t *testing.T, s *Shared, yaml string) (*envoyrls.Server, func(...*rlspb.Descriptor) *rlspb.Response) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r := beginRLS(t, s, ln)
	setConfig(t, r, yaml)
	envoy := servertest.Envoy{Conn: dialRLS(t, ln.Addr().String())}
	return r, func(d ...*rlspb.Descriptor) *rlspb.Response {
		out, err := envoy.ShouldRateLimit(t.Context(), rlsCall(d...))
		require.NoError(t, err)
		require.Len(t, out.Statuses, len(d))
		return out
	}
}

func setConfig(t *testing.T, r *envoyrls.Server, yaml string) {
	c, err := rules.Parse([]rules.File{{Name: "web.yaml", Data: []byte(yaml)}}, false)
	require.NoError(t, err)
	r.SetConfig(c)
}

// shownStatus is a status as one line: code, limit, remainder and seconds until the reset.
func shownStatus(s *rlspb.Status) string {
	text := fmt.Sprint(s.Code, " ", s.LimitRemaining)
	if l := s.CurrentLimit; l != nil {
		text += fmt.Sprintf(" of %d/%s %s", l.RequestsPerUnit, l.Unit, l.Name)
	}
	if s.DurationUntilReset != nil {
		text += fmt.Sprintf(" for %ds", s.DurationUntilReset.Seconds)
	}
	return text
}

func TestRLSConfiguredLimits(t *testing.T) {
	s := newTestServer(t, Config{})
	s.lim.Stamp.WallOffsetNs += 10_500 * int64(time.Millisecond) // 10.5 s past noon
	_, ask := serveLimits(t, s.Shared, shopLimits)
	for _, c := range []struct {
		of   *rlspb.Descriptor
		want []string
	}{
		{entries("user", "ann"), []string{"OK 4 of 5/MINUTE per-user for 50s", "OK 3 of 5/MINUTE per-user for 50s"}},
		{withHits(entries("user", "bob"), 5), []string{"OK 0 of 5/MINUTE per-user for 50s",
			"OVER_LIMIT 0 of 5/MINUTE per-user for 50s"}},
		{withHits(entries("user", "cal"), 6), []string{"OVER_LIMIT 5 of 5/MINUTE per-user for 50s"}},
		{withHits(entries("user", "dan"), 0), []string{"OK 5 of 5/MINUTE per-user for 50s"}},
		{entries("user", "root"), []string{"OK 4294967295"}},
		{entries("user", "ann", "path", "/"), []string{"OK 0"}},
		{entries("nothing", "x"), []string{"OK 0"}},
		{entries(), []string{"OK 0"}},
		{entries("closed", "x"), []string{"OVER_LIMIT 0 of 0/DAY  for 43190s"}},
		{withHits(entries("closed", "y"), 0), []string{"OK 0 of 0/DAY  for 43190s"}},
		{entries("tried", "x"), []string{"OK 0 of 1/SECOND  for 1s", "OK 0 of 1/SECOND  for 1s"}},
		{entries("quota", "x"), []string{"OK 0 of 1/SECOND  for 1s", "OK 0 of 1/SECOND "}},
		{entries("file", "img1"), []string{"OK 1 of 2/WEEK  for 388790s"}},
		{entries("file", "img2"), []string{"OK 0 of 2/WEEK  for 388790s", "OVER_LIMIT 0 of 2/WEEK  for 388790s"}},
		{withLimit(entries("user", "ann"), 3, rlspb.Unit_MINUTE), []string{"OK 0 of 3/MINUTE  for 50s"}},
		{withLimit(entries("user", "ann"), 3, rlspb.Unit_HOUR), []string{"OK 2 of 3/HOUR  for 3590s"}},
	} {
		for _, want := range c.want {
			out := ask(c.of)
			require.Equal(t, want, shownStatus(out.Statuses[0]), "%v", c.of)
			require.Equal(t, strings.HasPrefix(want, "OVER"), out.OverallCode == rlspb.Code_OVER_LIMIT)
			require.Empty(t, out.ResponseHeadersToAdd)
			require.Empty(t, out.RawBody)
		}
	}
	require.Contains(t, s.client(t).raw("KEYS", "envoy|*"), "envoy|web|WEEK|file|img*")
}

// TestRLSReplaces checks that a limit of one descriptor replaces one of another in the same call.
func TestRLSReplaces(t *testing.T) {
	s := newTestServer(t, Config{})
	_, ask := serveLimits(t, s.Shared, shopLimits)
	for i, want := range []string{"OK 1 of 2/HOUR  for 3600s", "OK 0 of 2/HOUR  for 3600s"} {
		out := ask(entries("user", "ann"), entries("user", "ann", "path", "/pay"))
		require.Equal(t, "OK 0", shownStatus(out.Statuses[0]), i)
		require.Equal(t, want, shownStatus(out.Statuses[1]), i)
	}
	require.Equal(t, "OK 4 of 5/MINUTE per-user for 60s", shownStatus(ask(entries("user", "ann")).Statuses[0]))
}

// TestRLSLimitFields checks which descriptor the response header fields describe.
func TestRLSLimitFields(t *testing.T) {
	s := newTestServer(t, Config{})
	r, ask := serveLimits(t, s.Shared, shopLimits)
	r.SendFields(true)
	out := ask(entries("user", "ann"), entries("file", "img"), entries("user", "root"))
	require.Equal(t, "RateLimit-Limit: 2\nRateLimit-Remaining: 1\nRateLimit-Reset: 388800\n", fields(out))
	out = ask(entries("closed", "x"), entries("quota", "x"))
	require.Equal(t, "RateLimit-Limit: 0\nRateLimit-Remaining: 0\nRateLimit-Reset: 43200\nRetry-After: 43200\n",
		fields(out))
	out = ask(entries("quota", "x"))
	require.Equal(t, rlspb.Code_OK, out.OverallCode)
	require.Equal(t, "RateLimit-Limit: 1\nRateLimit-Remaining: 0\nRateLimit-Reset: 1\n", fields(out))
	require.Empty(t, fields(ask(entries("user", "root"))))
}

// TestRLSConfigIsReplaced checks that a new configuration counts from the next call on, keeps the counts of limits that
// stay, and that domains without a configuration have policies.
func TestRLSConfigIsReplaced(t *testing.T) {
	s := limited(t, Config{})
	r, ask := serveLimits(t, s.Shared, shopLimits)
	ask(withHits(entries("user", "ann"), 5))
	setConfig(t, r, "domain: web\ndescriptors: [{key: user, rate_limit: {unit: minute, requests_per_unit: 7}}]")
	require.Equal(t, "OK 1 of 7/MINUTE  for 60s", shownStatus(ask(entries("user", "ann")).Statuses[0]))
	require.Equal(t, "OK 0", shownStatus(ask(entries("closed", "x")).Statuses[0]))
	setConfig(t, r, "domain: other")
	require.Equal(t, "web:plan", ask(entries("plan", "free")).Statuses[0].CurrentLimit.Name)
	r.SetConfig(nil)
	require.Equal(t, "web:user", ask(entries("user", "ann")).Statuses[0].CurrentLimit.Name)
}

// TestRLSLimitsOfHostileValues checks that values of clients neither fail nor meet the limiter of another descriptor.
func TestRLSLimitsOfHostileValues(t *testing.T) {
	s := newTestServer(t, Config{})
	const limit = "{key: a, rate_limit: {unit: day, requests_per_unit: 1}"
	_, ask := serveLimits(t, s.Shared, "domain: web\ndescriptors: ["+limit+", descriptors: ["+limit+"}]}]")
	long := strings.Repeat("x", 10<<10)
	for _, d := range []*rlspb.Descriptor{
		entries("a", "x|a|y"), entries("a", "x", "a", "y"), entries("a", "x%7Ca%7Cy"), entries("a", "\xff\xfe"),
		entries("a", ""), entries("a", long), entries("a", long+"x"), entries("a", "a\x00\r\n"),
	} {
		require.Equal(t, rlspb.Code_OK, ask(d).OverallCode, "%.40s", d)
		require.Equal(t, rlspb.Code_OVER_LIMIT, ask(d).OverallCode, "%.40s", d)
	}
}

// TestRLSBlocksPrecedeModes checks that a blocked client is denied by limits that deny nothing themselves, and that an
// IPv6 client is one network.
func TestRLSBlocksPrecedeModes(t *testing.T) {
	s := newTestServer(t, Config{})
	_, ask := serveLimits(t, s.Shared, shopLimits)
	require.Equal(t, "OK", s.client(t).say("RL.BLOCK ip:192.0.2.66 30s EVERYWHERE"))
	for _, kind := range []string{"tried", "quota"} {
		out := ask(entries(kind, "x"), entries("remote_address", "192.0.2.66"))
		require.Equal(t, []rlspb.Code{2, 2}, codesOf(out))
		require.Equal(t, &durationpb.Duration{Seconds: 30}, out.Statuses[0].DurationUntilReset)
	}
	require.Equal(t, rlspb.Code_OK, ask(entries("remote_address", "2001:db8::1")).OverallCode)
	require.Equal(t, rlspb.Code_OVER_LIMIT, ask(entries("remote_address", "2001:db8::2")).OverallCode)
}

// TestRLSLimitMetrics checks the counters, and that limits in shadow or quota mode count no denials.
func TestRLSLimitMetrics(t *testing.T) {
	s := newTestServer(t, Config{})
	_, ask := serveLimits(t, s.Shared, shopLimits)
	ask(withHits(entries("user", "ann"), 3))
	ask(withHits(entries("user", "ann"), 2)) // the 5th is above 80%
	ask(withHits(entries("user", "ann"), 2)) // all above
	ask(withHits(entries("user", "eve"), 7)) // the 5th above 80%, and 2 above 100%
	ask(entries("user", "root"), entries("nothing", "x"))
	for range 3 {
		ask(entries("tried", "x"), entries("quota", "x"))
	}
	ask(entries("remote_address", "192.0.2.7"))
	ask(withLimit(entries("user", "a", "b", "c.d"), 3, rlspb.Unit_HOUR))
	require.NoError(t, testutil.GatherAndCompare(metrics.NewRegistry(s.Service), strings.NewReader(`
# HELP ratelimit_service_rate_limit_over_limit Hits above a limit of --envoy-config.
# TYPE ratelimit_service_rate_limit_over_limit counter
ratelimit_service_rate_limit_over_limit{domain="web",key1="user"} 4
ratelimit_service_rate_limit_over_limit{domain="web",key1="tried"} 2
ratelimit_service_rate_limit_over_limit{domain="web",key1="quota"} 2
ratelimit_service_rate_limit_over_limit{domain="web",key1="remote_address_192_0_2_7"} 0
ratelimit_service_rate_limit_over_limit{domain="web",key1="user_a",key2="b_c"} 0
# HELP ratelimit_service_rate_limit_total_hits Hits under a limit of --envoy-config.
# TYPE ratelimit_service_rate_limit_total_hits counter
ratelimit_service_rate_limit_total_hits{domain="web",key1="user"} 14
ratelimit_service_rate_limit_total_hits{domain="web",key1="tried"} 3
ratelimit_service_rate_limit_total_hits{domain="web",key1="quota"} 3
ratelimit_service_rate_limit_total_hits{domain="web",key1="remote_address_192_0_2_7"} 1
ratelimit_service_rate_limit_total_hits{domain="web",key1="user_a",key2="b_c"} 1
# HELP ratelimit_service_rate_limit_near_limit Hits above 80% of a limit of --envoy-config, up to the limit.
# TYPE ratelimit_service_rate_limit_near_limit counter
ratelimit_service_rate_limit_near_limit{domain="web",key1="user"} 2
ratelimit_service_rate_limit_near_limit{domain="web",key1="tried"} 1
ratelimit_service_rate_limit_near_limit{domain="web",key1="quota"} 1
ratelimit_service_rate_limit_near_limit{domain="web",key1="remote_address_192_0_2_7"} 1
ratelimit_service_rate_limit_near_limit{domain="web",key1="user_a",key2="b_c"} 0
# HELP ratelimit_service_rate_limit_within_limit Hits that a limit of --envoy-config allowed.
# TYPE ratelimit_service_rate_limit_within_limit counter
ratelimit_service_rate_limit_within_limit{domain="web",key1="user"} 5
ratelimit_service_rate_limit_within_limit{domain="web",key1="tried"} 1
ratelimit_service_rate_limit_within_limit{domain="web",key1="quota"} 1
ratelimit_service_rate_limit_within_limit{domain="web",key1="remote_address_192_0_2_7"} 1
ratelimit_service_rate_limit_within_limit{domain="web",key1="user_a",key2="b_c"} 1
# HELP ratelimit_service_rate_limit_shadow_mode Hits above a limit of --envoy-config in shadow mode.
# TYPE ratelimit_service_rate_limit_shadow_mode counter
ratelimit_service_rate_limit_shadow_mode{domain="web",key1="user"} 0
ratelimit_service_rate_limit_shadow_mode{domain="web",key1="tried"} 2
ratelimit_service_rate_limit_shadow_mode{domain="web",key1="quota"} 0
ratelimit_service_rate_limit_shadow_mode{domain="web",key1="remote_address_192_0_2_7"} 0
ratelimit_service_rate_limit_shadow_mode{domain="web",key1="user_a",key2="b_c"} 0
# HELP weir_requests_total Requests for units, by command and result. Only the node that received a request counts it.
# TYPE weir_requests_total counter
weir_requests_total{command="rl.check",result="allowed"} 10
weir_requests_total{command="rl.check",result="limited"} 2
`), "ratelimit_service_rate_limit_over_limit", "ratelimit_service_rate_limit_total_hits",
		"ratelimit_service_rate_limit_near_limit", "ratelimit_service_rate_limit_within_limit",
		"ratelimit_service_rate_limit_shadow_mode", "weir_requests_total"))
}

// TestRLSSeriesAreBounded checks that values of clients cannot add series without end.
func TestRLSSeriesAreBounded(t *testing.T) {
	s := newTestServer(t, Config{})
	long := s.RLS.Limits.Of("web.user_" + strings.Repeat("x", 1024))
	require.Same(t, long, s.RLS.Limits.Of("web.user_"+strings.Repeat("y", 1024)))
	for i := range 20_000 {
		s.RLS.Limits.Of(fmt.Sprintf("web.user_%d\xff", i)).TotalHits.Add(1)
	}
	n, err := testutil.GatherAndCount(metrics.NewRegistry(s.Service), "ratelimit_service_rate_limit_total_hits")
	require.NoError(t, err)
	require.Equal(t, 10_000, n)
	require.Same(t, long, s.RLS.Limits.Of("web.one_more"))
	require.EqualValues(t, 10_001, s.RLS.Limits.Of("web.one_more").TotalHits.Load())
}
