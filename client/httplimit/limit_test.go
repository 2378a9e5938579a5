package httplimit_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/client/httplimit"
	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/httpfields"
	"github.com/weir-project/weir/internal/weirtest"
	"github.com/weir-project/weir/limiter"
)

func newClient(t testing.TB, s *weirtest.Server, o client.Options) *client.Client {
	return newClientOn(t, s.Redis(), o)
}

// newClientOn returns a patient client that logs nothing. By default it denies in an outage.
func newClientOn(t testing.TB, rdb *redis.Client, o client.Options) *client.Client {
	t.Helper()
	o.Timeout = 10 * time.Second
	o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	if o.WhenDown == 0 {
		o.WhenDown = client.Closed
	}
	c, err := client.New(rdb, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// serve serves requests with the limits of o, and counts those that pass.
func serve(t testing.TB, c *client.Client, o httplimit.Options) (web *httptest.Server, served *atomic.Int64) {
	o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	limit, err := httplimit.New(c, o)
	require.NoError(t, err)
	served = new(atomic.Int64)
	web = httptest.NewServer(limit(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		served.Add(1)
		_, _ = io.WriteString(w, "served")
	})))
	t.Cleanup(web.Close)
	return web, served
}

// send sends a request with headers, given as names and values.
func send(t testing.TB, method, url string, headers ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	require.NoError(t, err)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res, string(body)
}

// fieldsOf returns the header fields that a limiter sets, except the time of reset.
func fieldsOf(res *http.Response) map[string]string {
	all := map[string]string{}
	for _, name := range []string{"RateLimit", "RateLimit-Policy", "X-RateLimit-Limit",
		"X-RateLimit-Remaining", "Retry-After"} {
		if v := res.Header.Get(name); v != "" {
			all[name] = v
		}
	}
	return all
}

func TestRepliesTellWhatIsLeft(t *testing.T) {
	s := weirtest.Start(t)
	login := client.TokenBucket(client.Rate{Units: 1, Per: 6 * time.Second}, 2)
	web, served := serve(t, newClient(t, s, client.Options{}), httplimit.Options{
		Routes: []httplimit.Route{{Pattern: "POST /login", Name: "login", Rule: login,
			Key: new(httplimit.Proxies).ByIP()}},
	})
	res, body := send(t, http.MethodPost, web.URL+"/login")
	require.Equal(t, "served", body)
	require.Equal(t, map[string]string{
		"RateLimit": `"login";r=1;t=6`, "RateLimit-Policy": `"login";q=2;w=12`, "X-RateLimit-Limit": "2",
		"X-RateLimit-Remaining": "1",
	}, fieldsOf(res))
	reset, err := strconv.ParseInt(res.Header.Get("X-RateLimit-Reset"), 10, 64)
	require.NoError(t, err)
	require.Greater(t, reset, time.Now().Unix())
	send(t, http.MethodPost, web.URL+"/login")

	res, body = send(t, http.MethodPost, web.URL+"/login")
	require.Equal(t, http.StatusTooManyRequests, res.StatusCode)
	require.Equal(t, map[string]string{
		"RateLimit": `"login";r=0;t=6`, "RateLimit-Policy": `"login";q=2;w=12`, "X-RateLimit-Limit": "2",
		"X-RateLimit-Remaining": "0", "Retry-After": "6",
	}, fieldsOf(res))
	require.Equal(t, "application/problem+json", res.Header.Get("Content-Type"))
	require.Equal(t, "no-store", res.Header.Get("Cache-Control"))
	require.JSONEq(t, `{"type": "https://iana.org/assignments/http-problem-types#quota-exceeded",
		"title": "Request cannot be satisfied as assigned quota has been exceeded", "status": 429,
		"detail": "Rate limit exceeded. Try again in 6 seconds.", "retryAfter": 6, "violated-policies": ["login"]}`, body)
	require.EqualValues(t, 2, served.Load())

	res, body = send(t, http.MethodGet, web.URL+"/login") // a method that has no route
	require.Equal(t, "served", body)
	require.Empty(t, fieldsOf(res))
}

// TestProblemShapes checks the problem documents of programs that weir replaces.
func TestProblemShapes(t *testing.T) {
	s := weirtest.Start(t)
	c := newClient(t, s, client.Options{})
	rule := client.FixedFirst(time.Minute, 1)
	for name, want := range map[string]struct {
		problem httplimit.Problem
		body    string
	}{
		"with limit type and time": {
			httplimit.Problem{
				Type: "https://example.org/problems/rate-limit-exceeded", Title: "Too Many Requests",
				Members: func(_ *http.Request, d httplimit.Denial) map[string]any {
					after := int(d.Decision.RetryAfter / time.Second)
					return map[string]any{
						"limitType": d.Route, "timestamp": "2024-01-15T10:23:45.123Z", "violated-policies": nil,
						"detail": "Rate limit exceeded for " + d.Route + " requests. Please retry after " +
							strconv.Itoa(after) + " seconds.",
					}
				},
			},
			`{"type": "https://example.org/problems/rate-limit-exceeded", "title": "Too Many Requests", "status": 429,
			  "detail": "Rate limit exceeded for login requests. Please retry after 60 seconds.",
			  "limitType": "login", "retryAfter": 60, "timestamp": "2024-01-15T10:23:45.123Z"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			web, _ := serve(t, c, httplimit.Options{Problem: want.problem, Routes: []httplimit.Route{
				{Pattern: "/", Name: "login", Rule: rule, Key: httplimit.ByHeader("X-Tenant")},
			}})
			send(t, http.MethodGet, web.URL, "X-Tenant", name)
			_, body := send(t, http.MethodGet, web.URL, "X-Tenant", name)
			require.JSONEq(t, want.body, body)
		})
	}
}

func TestRoutes(t *testing.T) {
	s := weirtest.Start(t)
	c := newClient(t, s, client.Options{})
	_, err := c.SetPolicy(
		t.Context(), "auth", client.PolicyTerms{Limits: []*client.Rule{client.FixedFirst(time.Hour, 1)}})
	require.NoError(t, err)
	one, auth := client.FixedFirst(time.Hour, 1), client.Policy("auth")
	web, _ := serve(t, c, httplimit.Options{
		Routes: []httplimit.Route{
			{Pattern: "/login", Rule: auth, Key: httplimit.ByRoute()},
			{Pattern: "/signin", Rule: auth, Key: httplimit.ByRoute()},
			{Pattern: "/users/{id}", Rule: one, Key: httplimit.ByRoute()},
			{Pattern: "/dear", Rule: client.FixedFirst(time.Hour, 5), Key: httplimit.ByRoute(),
				Cost: func(*http.Request) int64 { return 5 }},
			{Pattern: "/", Rule: one, Key: httplimit.ByRoute()},
		},
		Exclude: []string{"/healthz", "/static/"},
	})
	for _, step := range []struct {
		method, path string
		status       int
	}{
		{http.MethodGet, "/login", 200}, {http.MethodGet, "/signin", 429}, // one policy for both
		{http.MethodGet, "//login", 429}, {http.MethodGet, "/x/../login", 429}, // unusual spellings of the path
		{http.MethodOptions, "/login", 429},
		{http.MethodGet, "/users/1", 200}, {http.MethodGet, "/users/2", 429},
		{http.MethodGet, "/dear", 200}, {http.MethodGet, "/dear", 429},
		{http.MethodGet, "/other", 200}, {http.MethodHead, "/another", 429},
		{http.MethodGet, "/healthz", 200}, {http.MethodGet, "/static/a.css", 200},
		{http.MethodGet, "/static/b.css", 200},
	} {
		res, _ := send(t, step.method, web.URL+step.path)
		require.Equal(t, step.status, res.StatusCode, "%s %s", step.method, step.path)
	}
	strict, _ := serve(t, c, httplimit.Options{LimitPreflight: true,
		Routes: []httplimit.Route{{Pattern: "/", Rule: auth, Key: httplimit.ByRoute()}}})
	res, _ := send(t, http.MethodOptions, strict.URL, preflight...)
	require.Equal(t, 429, res.StatusCode)
}

// preflight are the headers of a preflight request.
var preflight = []string{"Origin", "https://example.org", "Access-Control-Request-Method", "POST"}

// TestOnlyPreflightPasses checks that an OPTIONS request is limited unless it is a preflight request of a browser,
// which has no body.
func TestOnlyPreflightPasses(t *testing.T) {
	s := weirtest.Start(t)
	web, _ := serve(t, newClient(t, s, client.Options{}), httplimit.Options{Routes: []httplimit.Route{
		{Pattern: "/", Rule: client.FixedFirst(time.Hour, 1), Key: httplimit.ByRoute()}}})
	send(t, http.MethodGet, web.URL)
	ask := func(body io.Reader, headers ...string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodOptions, web.URL, body)
		require.NoError(t, err)
		for i := 0; i < len(headers); i += 2 {
			r.Header.Add(headers[i], headers[i+1])
		}
		res, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		return res.StatusCode
	}
	require.Equal(t, 200, ask(nil, preflight...))
	require.Equal(t, 429, ask(nil))
	require.Equal(t, 429, ask(nil, preflight[:2]...))
	require.Equal(t, 429, ask(nil, preflight[2:]...))
	require.Equal(t, 429, ask(strings.NewReader("work"), preflight...))
	require.Equal(t, 429, ask(io.MultiReader(strings.NewReader("work")), preflight...), "chunked")
}

// TestReasonsForNever checks what clients are told when no wait helps.
func TestReasonsForNever(t *testing.T) {
	s := weirtest.Start(t)
	c := newClient(t, s, client.Options{})
	cost := int64(1)
	ask := func(rule *client.Rule) string {
		web, _ := serve(t, c, httplimit.Options{Routes: []httplimit.Route{{Pattern: "/", Name: "r", Rule: rule,
			Key: httplimit.ByRoute(), Cost: func(*http.Request) int64 { return cost }}}})
		res, body := send(t, http.MethodGet, web.URL)
		require.Equal(t, 429, res.StatusCode)
		require.Equal(t, "31536000", res.Header.Get("Retry-After"))
		var doc map[string]any
		require.NoError(t, json.Unmarshal([]byte(body), &doc))
		return strings.TrimPrefix(doc["detail"].(string), "Rate limit exceeded. ")
	}
	cost = 3
	require.Equal(t, httpfields.NeverFits.String(), ask(client.FixedFirst(time.Hour, 2)))
	_, err := c.Take(t.Context(), client.Quota(client.Forever, "", 2), "r|route")
	require.NoError(t, err)
	require.Equal(t, httpfields.NeverFits.String(), ask(client.Quota(client.Forever, "", 2)))
	cost = 2
	require.Equal(t, httpfields.UsedUp.String(), ask(client.Quota(client.Forever, "", 2)))
	_, err = c.Reset(t.Context(), "r|route")
	require.NoError(t, err)
	require.NoError(t, c.Block(t.Context(), "r|route", client.Never, ""))
	require.Equal(t, httpfields.Blocked.String(), ask(client.FixedFirst(time.Hour, 2)))
	require.Equal(t, httpfields.Blocked.String(), ask(client.Quota(client.Forever, "", 2)))
	_, err = c.SetPolicy(t.Context(), "p", client.PolicyTerms{Reserved: 0.5,
		Limits: []*client.Rule{client.Quota(client.Forever, "", 4)}})
	require.NoError(t, err)
	cost = 2
	_, err = c.Take(t.Context(), client.Policy("p"), "route")
	require.NoError(t, err)
	require.Equal(t, httpfields.UsedUp.String(), ask(client.Policy("p")))
	cost = 3
	require.Equal(t, httpfields.NeverFits.String(), ask(client.Policy("p")))
	require.NoError(t, c.Block(t.Context(), "route", client.Never, ""))
	cost = 1
	require.Equal(t, httpfields.Blocked.String(), ask(client.Policy("p")))
}

func TestWithoutWeir(t *testing.T) {
	s := weirtest.Start(t)
	rule := client.FixedFirst(time.Hour, 4)
	routes := []httplimit.Route{{Pattern: "/", Rule: rule, Key: httplimit.ByRoute()}}
	local, served := serve(t, newClient(t, s, client.Options{WhenDown: client.Local}),
		httplimit.Options{Routes: routes})
	closed, _ := serve(t, newClient(t, s, client.Options{WhenDown: client.Closed}), httplimit.Options{Routes: routes})
	s.Stop()
	for range 3 {
		send(t, http.MethodGet, local.URL)
	}
	require.EqualValues(t, 2, served.Load(), "the fallback must admit half of four")
	for _, url := range []string{local.URL, closed.URL} {
		res, body := send(t, http.MethodGet, url)
		require.Equal(t, http.StatusServiceUnavailable, res.StatusCode)
		require.NotEmpty(t, res.Header.Get("Retry-After"))
		var doc map[string]any
		require.NoError(t, json.Unmarshal([]byte(body), &doc))
		require.Equal(t, httpfields.ReducedCapacity, doc["type"])
	}
}

// TestBusyIsRefused checks that a request passes under no fallback while weir is busy, and that the answer is 503 even
// where an outage is answered with 429.
func TestBusyIsRefused(t *testing.T) {
	s := weirtest.Start(t)
	s.Instead(func([]engine.Op) (bool, error) { return false, limiter.ErrOverloaded })
	for _, fallback := range []client.Fallback{client.Open, client.Closed, client.Local} {
		var told client.Source
		web, served := serve(t, newClient(t, s, client.Options{WhenDown: fallback}), httplimit.Options{
			FallbackStatus: http.StatusTooManyRequests,
			Decided:        func(_ *http.Request, _, _ string, d client.Decision) { told = d.Source },
			Routes: []httplimit.Route{{Pattern: "/", Rule: client.FixedFirst(time.Hour, 4), Key: httplimit.ByRoute(),
				Queue: time.Second}},
		})
		res, body := send(t, http.MethodGet, web.URL)
		require.Equal(t, http.StatusServiceUnavailable, res.StatusCode, body)
		require.Equal(t, "1", res.Header.Get("Retry-After"))
		require.Empty(t, res.Header.Get("RateLimit"), "weir said nothing about the limit")
		require.Contains(t, body, "could not be checked in time")
		require.Equal(t, client.FromBusy, told)
		require.Zero(t, served.Load())
	}
}

func TestMistakesDoNotSwitchLimitsOff(t *testing.T) {
	s := weirtest.Start(t)
	c := newClient(t, s, client.Options{WhenDown: client.Open})
	web, served := serve(t, c,
		httplimit.Options{Routes: []httplimit.Route{{Pattern: "/", Rule: client.Policy("no-such"),
			Key: httplimit.ByRoute()}}})
	res, body := send(t, http.MethodGet, web.URL)
	require.Equal(t, http.StatusServiceUnavailable, res.StatusCode)
	require.NotContains(t, body, "no-such policy", "the error must only be in the log")
	require.Zero(t, served.Load())

	rule := client.FixedFirst(time.Hour, 4)
	for name, o := range map[string]httplimit.Options{
		"Routes is empty":                       {},
		"Key, and Rule or Policy, are required": {Routes: []httplimit.Route{{Pattern: "/", Rule: rule}}},
		"bad rule": {Routes: []httplimit.Route{{Pattern: "/", Rule: client.Fixed(0, 0),
			Key: httplimit.ByRoute()}}},
		"no path": {Routes: []httplimit.Route{{Pattern: "GET", Rule: rule, Key: httplimit.ByRoute()}}},
		"conflicts": {Routes: []httplimit.Route{{Pattern: "/a", Rule: rule, Key: httplimit.ByRoute()}},
			Exclude: []string{"/a"}},
		"the name must": {Routes: []httplimit.Route{{Pattern: "/" + strings.Repeat("a", 200), Rule: rule,
			Key: httplimit.ByRoute()}}},
	} {
		_, err := httplimit.New(c, o)
		require.ErrorIs(t, err, httplimit.ErrBadOptions)
		require.ErrorContains(t, err, name)
	}
}

func TestDenialsOfOnesOwn(t *testing.T) {
	s := weirtest.Start(t)
	web, _ := serve(t, newClient(t, s, client.Options{}), httplimit.Options{
		NoFields: true,
		Routes:   []httplimit.Route{{Pattern: "/", Rule: client.FixedFirst(time.Hour, 1), Key: httplimit.ByRoute()}},
		Denied: func(w http.ResponseWriter, _ *http.Request, d httplimit.Denial) {
			http.Error(w, d.Detail, d.Status)
		},
	})
	send(t, http.MethodGet, web.URL)
	res, body := send(t, http.MethodGet, web.URL)
	require.Equal(t, "Rate limit exceeded. Try again in 3600 seconds.\n", body)
	require.Equal(t, map[string]string{"Retry-After": "3600"}, fieldsOf(res))
}

// TestPacing checks that the middleware delays the requests that a leaky bucket admits with a delay.
func TestPacing(t *testing.T) {
	s := weirtest.Start(t)
	web, served := serve(t, newClient(t, s, client.Options{}), httplimit.Options{
		Routes: []httplimit.Route{{Pattern: "/", Rule: client.LeakyBucket(client.PerSecond(20), 2),
			Key: httplimit.ByRoute()}},
	})
	start := time.Now()
	for range 3 {
		send(t, http.MethodGet, web.URL)
	}
	require.GreaterOrEqual(t, time.Since(start), 150*time.Millisecond,
		"requests wait 0, 50 and 100 ms, because weir's time stands still")
	res, _ := send(t, http.MethodGet, web.URL)
	require.Equal(t, 429, res.StatusCode)
	require.EqualValues(t, 3, served.Load())
}

// TestTwice checks two middlewares around one handler. Their routes have different names, so their limiters are
// separate.
func TestTwice(t *testing.T) {
	s := weirtest.Start(t)
	c := newClient(t, s, client.Options{})
	limited := func(name string, rule *client.Rule, next http.Handler) http.Handler {
		limit, err := httplimit.New(c,
			httplimit.Options{Routes: []httplimit.Route{{Pattern: "/", Name: name, Rule: rule,
				Key: httplimit.ByRoute()}}})
		require.NoError(t, err)
		return limit(next)
	}
	web := httptest.NewServer(limited("hourly", client.FixedFirst(time.Hour, 2),
		limited("burst", client.TokenBucket(client.PerSecond(1), 1), http.NotFoundHandler())))
	t.Cleanup(web.Close)
	for _, want := range []struct {
		status int
		limit  string
	}{{404, `"burst";q=1;w=1`}, {429, `"burst";q=1;w=1`}, {429, `"hourly";q=2;w=3600`}} {
		res, _ := send(t, http.MethodGet, web.URL)
		require.Equal(t, want.status, res.StatusCode)
		require.Equal(t, want.limit, res.Header.Get("RateLimit-Policy"))
	}
}

// TestAddress checks that a user with a blocked address is denied, whatever the key of the limit is.
func TestAddress(t *testing.T) {
	c := newClient(t, weirtest.Start(t), client.Options{})
	proxies, err := httplimit.Trust("127.0.0.1")
	require.NoError(t, err)
	user := httplimit.ByUser(func(r *http.Request) string { return r.Header.Get("X-User") })
	web, _ := serve(t, c, httplimit.Options{
		Routes:  []httplimit.Route{{Pattern: "/", Rule: client.Fixed(time.Hour, 100), Key: user}},
		Address: proxies.Client,
	})
	status := func(address string) int {
		res, _ := send(t, http.MethodGet, web.URL, "X-User", "42", "X-Forwarded-For", address)
		return res.StatusCode
	}
	require.NoError(t, c.BlockEverywhere(t.Context(), "ip:2001:db8:0:7::/64", time.Hour, ""))
	require.Equal(t, http.StatusOK, status("2001:db8:0:8::1"))
	require.Equal(t, http.StatusTooManyRequests, status("2001:db8:0:7::1"))
	require.Equal(t, http.StatusTooManyRequests, status("2001:db8:0:7::2"),
		"another address of the same client must be denied")
	require.Equal(t, http.StatusOK, status("2001:db8:0:8::1"))
}
