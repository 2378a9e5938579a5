package httplimit

import (
	"cmp"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/client"
)

func routerOf(exclude []string, patterns ...string) (*router, error) {
	o := Options{Exclude: exclude}
	for _, p := range patterns {
		o.Routes = append(o.Routes, Route{Pattern: p, Rule: client.FixedFirst(time.Hour, 1), Key: ByRoute()})
	}
	if err := o.complete(); err != nil {
		return nil, err
	}
	return newRouter(&o)
}

// ask returns the pattern that a request matches. The target is the text that a client sends.
func (rt *router) ask(t testing.TB, request string) string {
	method, target, found := strings.Cut(request, " ")
	if !found {
		method, target = http.MethodGet, request
	}
	host, target, _ := strings.Cut(target, "/")
	u, err := url.ParseRequestURI("/" + target)
	require.NoError(t, err)
	route := rt.route(&http.Request{Method: method, Host: cmp.Or(host, "example.com"), URL: u})
	if route == nil {
		return "none"
	}
	return route.Pattern
}

func TestOrderOfPatterns(t *testing.T) {
	rt, err := routerOf([]string{"/health**", "/static/", "POST /api/free"},
		"POST /api/login", "**/login**", "GET /api/**", "intranet./wiki/**", "/static/upload", "/u/{x}/keys", "/")
	require.NoError(t, err)
	for request, want := range map[string]string{
		"POST /api/login": "POST /api/login", "/api/login": "**/login**", "POST /api/login/x": "**/login**",
		"/api/x": "GET /api/**", "HEAD /api": "GET /api/**",
		"POST /api/x": "/", "/u/7/keys": "/u/{x}/keys", "/x": "/",
		"/health": "none", "/healthz": "none", "/health/login": "none", "/x/health": "/",
		"/static/a": "none", "/static/login": "none", "/static/upload": "/static/upload",
		"POST /api/free": "none", "POST /api/free/login": "**/login**",
		"intranet/wiki/a": "intranet./wiki/**", "intranet.:80/wiki": "intranet./wiki/**",
		"INTRANET:80/wiki": "intranet./wiki/**", "/wiki/a": "/",
	} {
		require.Equal(t, want, rt.ask(t, request), request)
	}
}

// TestPathsThatTryToEscape checks unusual spellings of paths. A path that a server may take for a login is limited as
// one. A path that a server may take for something else is never excluded.
func TestPathsThatTryToEscape(t *testing.T) {
	rt, err := routerOf([]string{"/health**", "/static/"}, "**/login**", "/users/*/keys", "www.example.com/admin", "/")
	require.NoError(t, err)
	for target, want := range map[string]string{
		"/login/": "**/login**", "//login": "**/login**", "/./login": "**/login**", "/x/../login": "**/login**",
		"/%6cogin": "**/login**", "/%6C%6fgin": "**/login**",
		"/login;jsessionid=1": "**/login**", "/;x/login": "**/login**", "/a;x=/b/login;y": "**/login**",
		"/lo;x/..;y/login": "**/login**",
		"/x%2Flogin":       "**/login**", "/x%2flogin": "**/login**", "/%2e%2e/login": "**/login**",
		"/%2Flogin": "**/login**", "/login%00": "**/login**", "/login?x=/static/": "**/login**",
		"/health/../login": "**/login**", "/health%2F..%2Flogin": "**/login**",
		"/health;/../login": "**/login**", "/static/../login": "**/login**",
		"/static/..%2Flogin": "**/login**", "/static/%2e%2e/login": "**/login**",
		"/static/..;/login": "**/login**", "/static/x%2F..%2F..%2F": "/", "/static/a%2Fb": "none",
		"/" + strings.Repeat("a/", 100_000) + "login" + strings.Repeat("/b", 100_000): "**/login**",
		"/users/a%2Fb/keys": "/users/*/keys", "/users/7;x/keys": "/users/*/keys", "/users;x/7/keys": "/users/*/keys",
		"/LOGIN": "/", "/logi": "/", "/xlogin": "/", // other resources, for http.ServeMux as well
		"WWW.example.com/admin": "www.example.com/admin", "www.example.com./admin": "www.example.com/admin",
		"www.example.com.:80/admin": "www.example.com/admin",
	} {
		require.Equal(t, want, rt.ask(t, target), target[:min(len(target), 80)])
	}
	r := httptest.NewRequest(http.MethodOptions, "*", nil)
	require.Equal(t, "/", rt.route(r).Pattern)
	plain, err := routerOf(nil, "[::1]/x", "**.css")
	require.NoError(t, err)
	for _, host := range []string{"[::1]", "[::1]:80"} {
		require.Equal(t, "[::1]/x", plain.ask(t, host+"/x"))
	}
	require.Equal(t, "none", plain.ask(t, "/x"))
}

// TestRoutesThatNothingReaches checks that a route is refused if earlier patterns take all of its requests.
func TestRoutesThatNothingReaches(t *testing.T) {
	for name, c := range map[string]struct {
		exclude, patterns string
		taker             string // empty if every route is reached
	}{
		"a prefix before":     {"", "/ **/login**", `"/"`},
		"a glob before":       {"", "/api/** /api/login", `"/api/**"`},
		"a wider glob":        {"", "**/login** /api/login*", `"**/login**"`},
		"the same twice":      {"", "/a/* /a/*", `"/a/*"`},
		"the same otherwise":  {"", "/a/ /a/**", `"/a/"`},
		"a wildcard":          {"", "/users/* /users/{id}", `"/users/*"`},
		"any method before":   {"", "** POST_/login", `"**"`},
		"excluded":            {"/api/**", "/api/login /", "Exclude"},
		"excluded by the mux": {"/api/", "/api/*/x /", "Exclude"},
		"all of them":         {"**", "/", "Exclude"},
		"narrow first":        {"", "/api/login /api/** **/login** /", ""},
		"a method first":      {"", "GET_** POST_** /login", ""},
		"all methods of one":  {"", "GET_** HEAD_/x", `"GET **"`},
		"a host first":        {"", "example.com/** /login /**", ""},
		"two that overlap":    {"/health**", "/a** **b /{x}/c /{$}", ""},
		"what is left":        {"", "/a/* /a/**", ""},
		"the parent is left":  {"", "/a/*/** /a/**", ""},
		"nothing left":        {"", "/a/*/** /a/*", `"/a/*/**"`},
		"escaped":             {"", "/a%2Fb/* /a/b/** /%2A**", ""},
	} {
		t.Run(name, func(t *testing.T) {
			fields := func(s string) []string { return strings.Fields(s) }
			patterns := fields(c.patterns)
			for i := range patterns {
				patterns[i] = strings.ReplaceAll(patterns[i], "_", " ")
			}
			_, err := routerOf(fields(c.exclude), patterns...)
			if c.taker == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, ErrBadOptions)
			require.ErrorContains(t, err, "no request reaches this route")
			require.ErrorContains(t, err, c.taker)
		})
	}
}

func TestGlobsAreBounded(t *testing.T) {
	var patterns []string
	for i := range maxGlobs {
		patterns = append(patterns, "/"+strconv.Itoa(i)+"/*")
	}
	_, err := routerOf(nil, patterns...)
	require.NoError(t, err)
	_, err = routerOf([]string{"/x*"}, patterns...)
	require.ErrorContains(t, err, "at most 64 patterns")
}

func TestRoutingDoesNotAllocate(t *testing.T) {
	rt, err := routerOf([]string{"/health**", "/actuator/**"}, "**/login**", "**/auth**", "/api/*/x", "**/nowhere**")
	require.NoError(t, err)
	for _, target := range []string{"/", "/api/login", "/a/b/c/", "/healthz"} {
		r := httptest.NewRequest(http.MethodGet, target, nil)
		paths := readingsOf(r.URL)
		require.Zero(t, testing.AllocsPerRun(100, func() {
			paths = readingsOf(r.URL)
			for i := range rt.globs {
				rt.globs[i].matches(r.Method, r.Host, &paths)
			}
		}), target)
	}
}
