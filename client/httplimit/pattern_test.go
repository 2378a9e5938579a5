package httplimit_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/client/httplimit"
	"github.com/weir-project/weir/internal/weirtest"
)

// routesOf returns routes with the same rule.
func routesOf(patterns ...string) (all []httplimit.Route) {
	for _, p := range patterns {
		all = append(all, httplimit.Route{Pattern: p, Name: "login", Rule: client.FixedFirst(time.Hour, 2),
			Key: httplimit.ByRoute()})
	}
	return all
}

// TestPatternsThatLimitNothing checks that a pattern is refused if it matches nothing, or other requests than it
// seems to. The error shows the correct pattern.
func TestPatternsThatLimitNothing(t *testing.T) {
	for pattern, hint := range map[string]string{
		"*/login": `"**/login"`, "*/login*": `"**/login"`, "*": `"**/login"`, "POST *": `"**/login"`,
		"*.example.com/login": "cannot have wildcards", "api.*.com/login": "no wildcards",
		"/a***": "three stars", "/a/**/**": "'**/**' is '**'", "**/**/b": "'**/**' is '**'",
		"/files/{name}/*": `"/files/*/*"`, "/a{*": "with {wildcards}", "/{*path}": "bad wildcard",
		"/*?x": "%3F", "/*[a-z]": "%5B", "/**//a": `"/**/a"`, "/../**": `"/**"`, "/%zz*": "%25", "/*%2": "%25",
		"api/**": `"/api/**"`, "intranet/**": `"intranet./**"`,
		"/" + strings.Repeat("a", 127) + "*": "at most 127 bytes", "/:id/*": "{id}", "get **": `"GET **"`,
		"/users/:id": `"/users/{id}"`, "/users/<id>": "{name}", "/users/[id]": "%5B",
		"^/login": "a path begins with a slash", "/login$": `"/login"`,
		"/a|/b": "%7C", "/users/id}": "%7D", "/users/{id:[0-9]+}": "bad wildcard",
		"api/login": `"/api/login"`, "login/": `"/login/"`, "Example.com/": "small letters",
		"example.com:8080/":         "no port",
		"https://example.com/login": "no scheme", "[::1]:80/x": "[::1]/x", "Intranet./x": "small letters",
		"login": `"/login"`, "GET": `"/login"`, "": `"/login"`,
		"get /login": `"GET /login"`, "Post /login": `"POST /login"`, "ANY /login": `"/login"`, "* /login": `"/login"`,
		"GET|POST /login": `"GET /login"`, "GET,POST /login": "method", "M1 /login": `"POST /login"`,
		"/login?next=1": "%3F", "/login#top": "%23",
		"/login ": "no path", "POST /login ": "%20", "/my login": "no path", "/my login/x": "method",
		"//login": `"/login"`, "/a/../login": `"/login"`, "/login/.": `"/login"`,
	} {
		_, err := httplimit.New(nil, httplimit.Options{Routes: routesOf(pattern)})
		require.ErrorIs(t, err, httplimit.ErrBadOptions, pattern)
		require.ErrorContains(t, err, hint, pattern)
		require.NotContains(t, err.Error(), ".go:", pattern)
		if !strings.HasPrefix(pattern, "OPTIONS") {
			_, err = httplimit.New(nil, httplimit.Options{Routes: routesOf("/other"), Exclude: []string{pattern}})
			require.ErrorContains(t, err, hint, "excluded: %s", pattern)
		}
	}
}

// TestPatternsThatAreShadowed checks that a route is refused if another route or an exclusion takes all of its
// requests.
func TestPatternsThatAreShadowed(t *testing.T) {
	for _, o := range []httplimit.Options{
		{Routes: routesOf("/login", "/login")},
		{Routes: routesOf("/users/{id}", "/users/{name}")},
		{Routes: routesOf("/api/", "/api/{rest...}")},
		{Routes: routesOf("POST /login"), Exclude: []string{"POST /login"}},
		{Routes: routesOf("/users/{id}"), Exclude: []string{"/users/{user}"}},
	} {
		_, err := httplimit.New(nil, o)
		require.ErrorIs(t, err, httplimit.ErrBadOptions)
		require.ErrorContains(t, err, "conflicts with")
		require.NotContains(t, err.Error(), ".go:")
	}
}

// TestPatternsThatLimit checks that patterns of http.ServeMux are accepted and limit the requests that they match.
func TestPatternsThatLimit(t *testing.T) {
	s := weirtest.Start(t)
	c := newClient(t, s, client.Options{})
	for pattern, path := range map[string]string{
		"/": "/x", "/login": "/login", "POST /login": "/login", "POST\t /login": "/login", " /login": "/login",
		"/api/":       "/api/a/b",
		"/users/{id}": "/users/7", "/users/{id}/keys": "/users/7/keys", "/files/{rest...}": "/files/a/b",
		"/home/{$}": "/home/", "/{$}": "/",
		"example.com/": "/x", "www.example.com/login": "/login", "localhost/x": "/x", "127.0.0.1/x": "/x",
		"::1/x": "/x", "[::1]/x": "/x", "intranet./x": "/x", "example.com./x": "/x", "[2001:db8::1]/**": "/x",
		"intranet./**": "/x",
		"**":           "/x", "**/login**": "/a/login/b", "POST **/login**": "/login", "/api/**": "/api",
		"/v*/login": "/v1/login", "example.com/*": "/x",
		"/v1/items:batch": "/v1/items:batch", "/$metadata": "/$metadata", "/a%2Fb": "/a%2Fb",
		"/my%20file": "/my%20file", "/%2A": "/*",
		"/käse": "/k%C3%A4se", "/a(b)": "/a(b)", "/~u": "/~u", "/a+b": "/a+b", "M-SEARCH /x": "/x", "PROPFIND /x": "/x",
	} {
		routes := routesOf(pattern)
		routes[0].Name = pattern
		limit, err := httplimit.New(c, httplimit.Options{Routes: routes})
		require.NoError(t, err, pattern)
		method, host := http.MethodPost, "example.com"
		if before, _, found := strings.Cut(pattern, " "); found && before != "" {
			method = strings.TrimSpace(before)
		}
		if before, _, _ := strings.Cut(pattern, "/"); before != "" && !strings.ContainsAny(before, " \t*") {
			host = strings.TrimSuffix(before, ".")
		}
		if host == "::1" {
			host = "[::1]:8080"
		}
		h := limit(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		for i, want := range []int{200, 200, 429} {
			r := httptest.NewRequestWithContext(t.Context(), method, path, nil)
			r.Host = host
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			require.Equal(t, want, w.Code, "%s: request %d", pattern, i)
		}
	}
}
