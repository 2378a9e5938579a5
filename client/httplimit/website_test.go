package httplimit_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/client/httplimit"
	"github.com/weir-project/weir/internal/weirtest"
)

// TestClientFromSeveralHeaders checks that the first header with an address counts, and otherwise the connection.
// Headers of untrusted clients are ignored.
func TestClientFromSeveralHeaders(t *testing.T) {
	proxies, err := httplimit.Trust("10.0.0.0/8")
	require.NoError(t, err)
	byIP := proxies.In("X-Forwarded-For", "x-real-ip").ByIP()
	for name, c := range map[string]struct{ remote, forwarded, realIP, want string }{
		"both":                            {"10.0.0.1:1", "1.1.1.1, 203.0.113.9", "203.0.113.7", "ip:203.0.113.9"},
		"X-Real-IP only":                  {"10.0.0.1:1", "", "203.0.113.7", "ip:203.0.113.7"},
		"X-Forwarded-For without address": {"10.0.0.1:1", "unknown", "203.0.113.7", "ip:203.0.113.7"},
		"X-Forwarded-For of proxies only": {"10.0.0.1:1", "10.0.0.3, 10.0.0.2", "203.0.113.7", "ip:10.0.0.3"},
		"no address anywhere":             {"10.0.0.1:1", "unknown", "-", "ip:10.0.0.1"},
		"neither":                         {"10.0.0.1:1", "", "", "ip:10.0.0.1"},
		"an untrusted claim":              {"203.0.113.5:1", "1.1.1.1", "1.1.1.1", "ip:203.0.113.5"},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = c.remote
		if c.forwarded != "" {
			r.Header.Set("X-Forwarded-For", c.forwarded)
		}
		if c.realIP != "" {
			r.Header.Set("X-Real-IP", c.realIP)
		}
		require.Equal(t, c.want, byIP(r), name)
		user := httplimit.ByUser(func(*http.Request) string { return c.realIP })
		if c.realIP != "" {
			require.Equal(t, "user:"+c.realIP, httplimit.FirstOf(user, byIP)(r),
				"the user must take precedence over the address: %s", name)
		} else {
			require.Equal(t, c.want, httplimit.FirstOf(user, byIP)(r), name)
		}
	}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = "10.0.0.1:1"
	r.Header.Set("X-Forwarded-For", "203.0.113.9")
	require.Equal(t, "ip:10.0.0.1", proxies.In().ByIP()(r), "without names no header may be read")
}

// TestEnabled checks that nothing is limited, counted or logged while the switch is off.
func TestEnabled(t *testing.T) {
	s := weirtest.Start(t)
	var on atomic.Bool
	web, _ := serve(t, newClient(t, s, client.Options{}), httplimit.Options{
		Enabled: on.Load,
		Routes:  []httplimit.Route{{Pattern: "/", Rule: client.FixedFirst(time.Hour, 1), Key: httplimit.ByRoute()}},
	})
	for range 3 {
		res, _ := send(t, http.MethodGet, web.URL)
		require.Equal(t, http.StatusOK, res.StatusCode)
		require.Empty(t, fieldsOf(res))
	}
	on.Store(true)
	for _, want := range []int{200, 429} {
		res, _ := send(t, http.MethodGet, web.URL)
		require.Equal(t, want, res.StatusCode)
	}
	on.Store(false)
	res, _ := send(t, http.MethodGet, web.URL)
	require.Equal(t, http.StatusOK, res.StatusCode)
}

// TestLogDenials checks that a denial is one log line, whatever the client sent. It covers rules and policies.
func TestLogDenials(t *testing.T) {
	s := weirtest.Start(t)
	c := newClient(t, s, client.Options{WhenDown: client.Closed})
	_, err := c.SetPolicy(
		t.Context(), "auth", client.PolicyTerms{Limits: []*client.Rule{client.FixedFirst(time.Minute, 1)}})
	require.NoError(t, err)
	var log strings.Builder
	proxies, err := httplimit.Trust("127.0.0.1")
	require.NoError(t, err)
	web, _ := serve(t, c, httplimit.Options{
		LogDenials: slog.New(slog.NewTextHandler(&log, nil)),
		Routes: []httplimit.Route{
			{Pattern: "**/login**", Name: "login", Rule: client.FixedFirst(time.Minute, 1), Key: proxies.ByIP()},
			{Pattern: "**/auth**", Rule: client.Policy("auth"), Key: proxies.ByIP()},
			{Pattern: "/never", Rule: client.FixedFirst(time.Minute, 1), Key: proxies.ByIP(),
				Cost: func(*http.Request) int64 { return 2 }},
		},
	})
	denied := func(method, path string) string {
		send(t, method, web.URL+path, "X-Forwarded-For", "192.168.1.100")
		log.Reset()
		res, _ := send(t, method, web.URL+path, "X-Forwarded-For", "192.168.1.100")
		require.Equal(t, http.StatusTooManyRequests, res.StatusCode)
		require.Equal(t, 1, strings.Count(log.String(), "\n"), log.String())
		return log.String()
	}
	require.Contains(t, denied(http.MethodPost, "/api/login?password=secret"),
		`level=WARN msg="Rate limit exceeded" client=ip:192.168.1.100 endpoint="POST /api/login" limit=login retry_after=60s`)
	require.NotContains(t, log.String(), "secret")
	require.Contains(t, denied(http.MethodGet, "/auth%0a"),
		`client=ip:192.168.1.100 endpoint="GET /auth%0a" limit=auth retry_after=60s`)
	require.Contains(t, denied(http.MethodGet, "/never"), `limit=/never retry_after=never`)
	require.Less(t, len(denied(http.MethodGet, "/login"+strings.Repeat("x", 10_000))), 500)

	log.Reset()
	s.Stop()
	res, _ := send(t, http.MethodGet, web.URL+"/login")
	require.Equal(t, http.StatusServiceUnavailable, res.StatusCode)
	require.Empty(t, log.String(), "only the client logs the outage")
}

// TestPatternsOfAWebsite checks the patterns and exclusions in a website's documentation unchanged.
func TestPatternsOfAWebsite(t *testing.T) {
	s := weirtest.Start(t)
	var routes []httplimit.Route
	for _, r := range [][2]string{
		{"login", "**/login**"}, {"login", "**/auth**"}, {"login", "**/signin**"},
		{"recovery", "**/recovery**"}, {"recovery", "**/reset**"}, {"recovery", "**/forgot**"},
		{"payment", "**/payments**"}, {"default", "/"},
	} {
		routes = append(routes, httplimit.Route{Pattern: r[1], Name: r[0], Rule: client.FixedFirst(time.Hour, 1000),
			Key: httplimit.ByRoute()})
	}
	web, _ := serve(t, newClient(t, s, client.Options{}), httplimit.Options{Routes: routes, Exclude: []string{
		"/actuator/**", "/health**", "/metrics**", "/static/**", "/css/**", "/js/**", "/images/**",
	}})
	for path, want := range map[string]string{
		"/login": "login", "/api/login": "login", "/api/auth/login": "login", "/login/": "login",
		"/loginAgain": "login",
		"/authors":    "login", "/api/v1/signin?next=/": "login", "/%6Cogin": "login", "/api;a=b/auth": "login",
		"/recovery": "recovery", "/password/reset/42": "recovery", "/forgot-password": "recovery",
		"/payments": "payment", "/api/payments/7": "payment",
		"/": "default", "/api/users/7": "default", "/api/log%2Fin": "default", "/actuators": "default",
		"/statics/a": "default",
		"/health":    "", "/healthz": "", "/health/live": "", "/metrics": "", "/actuator/health": "",
		"/static/a.css": "", "/css/login.css": "",
		"/js/a.js": "", "/images/b/c.png": "",
		"/health/../login": "login", "/static/%2e%2e/api/auth/login": "login", "//health": "", "/static//login.js": "",
	} {
		res, _ := send(t, http.MethodGet, web.URL+path)
		name, _, _ := strings.Cut(res.Header.Get("RateLimit"), ";")
		if want != "" {
			want = strconv.Quote(want)
		}
		require.Equal(t, want, name, path)
		res, _ = send(t, http.MethodOptions, web.URL+path, preflight...)
		require.Empty(t, fieldsOf(res), "OPTIONS "+path)
	}
}
