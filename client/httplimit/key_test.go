package httplimit_test

import (
	"fmt"
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

func TestWhoTheClientIs(t *testing.T) {
	for name, c := range map[string]struct {
		trusted string // separated by blanks
		remote  string
		header  []string // lines of X-Forwarded-For
		want    string
	}{
		"nobody is trusted":  {"", "203.0.113.9:1", []string{"1.1.1.1"}, "ip:203.0.113.9"},
		"an untrusted claim": {"10.0.0.0/8", "203.0.113.9:1", []string{"1.1.1.1"}, "ip:203.0.113.9"},
		"a proxy's word":     {"10.0.0.0/8", "10.0.0.1:1", []string{"203.0.113.9"}, "ip:203.0.113.9"},
		"spoofed before the proxy": {"10.0.0.0/8", "10.0.0.1:1", []string{"1.1.1.1, 203.0.113.9"},
			"ip:203.0.113.9"},
		"spoofed as a proxy": {"10.0.0.0/8", "10.0.0.1:1", []string{"10.6.6.6, 203.0.113.9"},
			"ip:203.0.113.9"},
		"spoofed in a line of its own": {"10.0.0.0/8", "10.0.0.1:1", []string{"1.1.1.1", "203.0.113.9"},
			"ip:203.0.113.9"},
		"two proxies": {"10.0.0.0/8 192.0.2.7", "10.0.0.1:1",
			[]string{"1.1.1.1, 203.0.113.9,192.0.2.7"}, "ip:203.0.113.9"},
		"proxies only": {"10.0.0.0/8", "10.0.0.1:1", []string{"10.0.0.3, 10.0.0.2"}, "ip:10.0.0.3"},
		"no header":    {"10.0.0.0/8", "10.0.0.1:1", nil, "ip:10.0.0.1"},
		"no address":   {"10.0.0.0/8", "10.0.0.1:1", []string{"1.1.1.1, unknown"}, "ip:10.0.0.1"},
		"empty words":  {"10.0.0.0/8", "10.0.0.1:1", []string{"1.1.1.1, ,"}, "ip:10.0.0.1"},
		"with a port":  {"10.0.0.0/8", "10.0.0.1:1", []string{"203.0.113.9:4711"}, "ip:203.0.113.9"},
		"IPv6 is its /64": {"10.0.0.0/8", "10.0.0.1:1", []string{"2001:db8:1:2:3:4:5:6"},
			"ip:2001:db8:1:2::/64"},
		"IPv6 in brackets, with a port": {"10.0.0.0/8", "10.0.0.1:1", []string{"[2001:db8:1:2:3::6]:80"},
			"ip:2001:db8:1:2::/64"},
		"IPv6 proxy": {"2001:db8:f::/48", "[2001:db8:f::1]:1", []string{"203.0.113.9"},
			"ip:203.0.113.9"},
		"IPv4 in IPv6": {"10.0.0.0/8", "[::ffff:10.0.0.1]:1", []string{"::ffff:203.0.113.9"},
			"ip:203.0.113.9"},
		"a zone":                     {"", "[fe80::1%eth0]:1", nil, "ip:fe80::/64"},
		"a Unix socket":              {"unix", "@", []string{"203.0.113.9"}, "ip:203.0.113.9"},
		"a Unix socket, not trusted": {"", "@", []string{"203.0.113.9"}, ""},
		"a chain without end": {"10.0.0.0/8", "10.0.0.1:1",
			[]string{strings.Repeat("10.0.0.2, ", 10_000) + "10.0.0.3"}, "ip:10.0.0.2"},
		"a megabyte of nothing": {"10.0.0.0/8", "10.0.0.1:1", []string{strings.Repeat("x", 1<<20)},
			"ip:10.0.0.1"},
		"control characters and a comma": {"10.0.0.0/8", "10.0.0.1:1", []string{"\x00\x7f,203.0.113.9\t"},
			"ip:203.0.113.9"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := httplimit.Trust(strings.Fields(c.trusted)...)
			require.NoError(t, err)
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.RemoteAddr = c.remote
			r.Header["X-Forwarded-For"] = c.header
			require.Equal(t, c.want, p.ByIP()(r))
			require.Equal(t, c.header, r.Header["X-Forwarded-For"], "the request must not change")
		})
	}
	for _, bad := range []string{"", "10.0.0.0/33", "proxy.example", "10.0.0.0/8,"} {
		_, err := httplimit.Trust(bad)
		require.ErrorContains(t, err, "10.0.0.0/8, 10.1.2.3 or unix", bad)
	}
}

func TestKeysHaveBounds(t *testing.T) {
	huge := strings.Repeat("k", 1<<20)
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header["X-Odd"] = []string{"a b\x00\xff"}
	r.Header.Set("X-Huge", huge)
	r.Header.Set("X-Fine", "tenant-7")
	r.Header.Set("X-Api-Key", "secret")
	key := func(k httplimit.Key) string { return k(r) }
	require.Equal(t, "header:tenant-7", key(httplimit.ByHeader("X-Fine")))
	require.Regexp(t, `^header:#[0-9a-f]{32}$`, key(httplimit.ByHeader("X-Odd")))
	require.Regexp(t, `^header:#[0-9a-f]{32}$`, key(httplimit.ByHeader("X-Huge")))
	require.Regexp(t, `^key:#[0-9a-f]{32}$`, key(httplimit.ByAPIKey("X-Api-Key")))
	user := httplimit.ByUser(func(r *http.Request) string { return r.Header.Get("X-User") })
	require.Empty(t, key(user))
	require.Equal(t, "header:tenant-7",
		key(httplimit.FirstOf(user, httplimit.ByAPIKey("X-None"), httplimit.ByHeader("X-Fine"))))
	r.Header.Set("X-User", huge)
	require.Regexp(t, `^user:#[0-9a-f]{32}$`, key(user))
}

// TestKeysCannotBeEscaped checks over real HTTP that no client exceeds its limit by spoofing addresses, rotating
// them, or leaving the key out.
func TestKeysCannotBeEscaped(t *testing.T) {
	s := weirtest.Start(t)
	proxies, err := httplimit.Trust("127.0.0.1")
	require.NoError(t, err)
	rule := client.FixedFirst(time.Hour, 3)
	web, served := serve(t, newClient(t, s, client.Options{}), httplimit.Options{Routes: []httplimit.Route{
		{Pattern: "/ip", Rule: rule, Key: proxies.ByIP()},
		{Pattern: "/key", Rule: rule, Key: httplimit.ByAPIKey("X-Api-Key")},
	}})
	for name, headers := range map[string]func(i int) []string{
		"spoofed": func(i int) []string {
			return []string{"X-Forwarded-For", fmt.Sprintf("198.51.100.%d", i), "X-Forwarded-For", "203.0.113.9"}
		},
		"rotated": func(i int) []string {
			return []string{"X-Forwarded-For", fmt.Sprintf("2001:db8:1:2:%x::%x", i+1, i)}
		},
	} {
		served.Store(0)
		for i := range 10 {
			send(t, http.MethodGet, web.URL+"/ip", headers(i)...)
		}
		require.EqualValues(t, 3, served.Load(), name)
	}
	served.Store(0)
	for range 10 {
		send(t, http.MethodGet, web.URL+"/key")
	}
	require.EqualValues(t, 3, served.Load(), "requests without a key must share a limit")
}

// TestKeysAreAsWeirKnowsThem checks that keys have the names that weir and /check use. No client can use the name for
// requests without a key.
func TestKeysAreAsWeirKnowsThem(t *testing.T) {
	s := weirtest.Start(t)
	c := newClient(t, s, client.Options{})
	_, err := c.SetPolicy(
		t.Context(), "api", client.PolicyTerms{Limits: []*client.Rule{client.FixedFirst(time.Hour, 100)}})
	require.NoError(t, err)
	var last string
	user := func(r *http.Request) string { return r.Header.Get("X-User") }
	users := httplimit.FirstOf(httplimit.ByUser(user), new(httplimit.Proxies).ByIP())
	web, _ := serve(t, c, httplimit.Options{
		Decided: func(r *http.Request, route, key string, d client.Decision) {
			require.Contains(t, []string{r.URL.Path, "api"}, route)
			require.True(t, d.Allowed)
			last = key
		},
		Routes: []httplimit.Route{
			{Pattern: "/users", Rule: client.FixedFirst(time.Hour, 100), Key: users},
			{Pattern: "/keys", Rule: client.FixedFirst(time.Hour, 100), Key: httplimit.ByAPIKey("X-Api-Key")},
			{Pattern: "/policy", Rule: client.Policy("api"), Key: httplimit.ByHeader("X-Tenant")},
		},
	})
	for _, want := range []struct {
		path    string
		headers []string
		key     string
		limiter string
	}{
		{"/users", []string{"X-User", "42"}, "/users|user:42", "/users|user:42"},
		{"/users", nil, "/users|ip:127.0.0.1", "/users|ip:127.0.0.1"},
		{"/users", []string{"X-User", "anonymous"}, "/users|user:anonymous", "/users|user:anonymous"},
		{"/keys", nil, "/keys|anonymous", "/keys|anonymous"},
		{"/policy", nil, "anonymous", "policy|api|0|anonymous"},
		{"/policy", []string{"X-Tenant", "anonymous"}, "header:anonymous", "policy|api|0|header:anonymous"},
	} {
		send(t, http.MethodGet, web.URL+want.path, want.headers...)
		require.Equal(t, want.key, last)
		info, err := c.Inspect(t.Context(), want.limiter)
		require.NoError(t, err)
		require.EqualValues(t, 1, info.Used, want.limiter)
	}
}

// TestByIPIsThePeer checks that ByIP counts by the connection, whatever headers claim.
func TestByIPIsThePeer(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = "192.0.2.66:4711"
	r.Header.Set("X-Forwarded-For", "198.51.100.1")
	require.Equal(t, "ip:192.0.2.66", httplimit.ByIP()(r))
}
