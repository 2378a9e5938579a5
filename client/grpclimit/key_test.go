package grpclimit_test

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/client/grpclimit"
	"github.com/weir-project/weir/internal/weirtest"
)

// TestWhoTheCallerIs checks which key a caller gets, from its metadata and its address. Some callers are hostile.
func TestWhoTheCallerIs(t *testing.T) {
	for name, c := range map[string]struct {
		key      grpclimit.Key
		peer     string
		metadata []string
		want     string
	}{
		"IPv4": {grpclimit.ByPeer(), "192.0.2.7:1", nil, "ip:192.0.2.7"},
		"a claim": {grpclimit.ByPeer(), "192.0.2.7:1", []string{"x-forwarded-for", "1.1.1.1"},
			"ip:192.0.2.7"},
		"IPv6 is its /64":          {grpclimit.ByPeer(), "[2001:db8:1:2:3::4]:1", nil, "ip:2001:db8:1:2::/64"},
		"IPv6, another of its /64": {grpclimit.ByPeer(), "[2001:db8:1:2:ffff::]:1", nil, "ip:2001:db8:1:2::/64"},
		"IPv4 in IPv6":             {grpclimit.ByPeer(), "[::ffff:192.0.2.7]:1", nil, "ip:192.0.2.7"},
		"a zone":                   {grpclimit.ByPeer(), "[fe80::1%eth0]:1", nil, "ip:fe80::/64"},
		"a Unix socket":            {grpclimit.ByPeer(), "", nil, ""},
		"metadata":                 {grpclimit.ByMetadata("tenant"), "", []string{"tenant", "a"}, "metadata:a"},
		"the first of two": {grpclimit.ByMetadata("tenant"), "", []string{"tenant", "a", "tenant", "b"},
			"metadata:a"},
		"no metadata": {grpclimit.ByMetadata("tenant"), "", nil, ""},
		"odd": {grpclimit.ByMetadata("tenant"), "", []string{"tenant", "a b\x00\xff"},
			"metadata:#"},
		"huge": {grpclimit.ByMetadata("tenant"), "", []string{"tenant", strings.Repeat("a", 1<<20)},
			"metadata:#"},
		"a secret": {grpclimit.BySecret("authorization"), "", []string{"authorization", "Bearer s"},
			"key:#"},
		"a user": {grpclimit.ByUser(func(context.Context) string { return "42" }),
			"", nil, "user:42"},
		"a huge user": {grpclimit.ByUser(
			func(context.Context) string { return strings.Repeat("4", 1<<20) }), "", nil, "user:#"},
		"not a word of the server": {grpclimit.ByMetadata("tenant"), "", []string{"tenant", "anonymous"},
			"metadata:anonymous"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs(c.metadata...))
			if c.peer == "" {
				ctx = peer.NewContext(ctx, &peer.Peer{Addr: &net.UnixAddr{Name: "@", Net: "unix"}})
			} else {
				ctx = peer.NewContext(ctx, &peer.Peer{Addr: net.TCPAddrFromAddrPort(netip.MustParseAddrPort(c.peer))})
			}
			key := c.key(ctx)
			if hashed, is := strings.CutSuffix(c.want, "#"); is {
				require.Regexp(t, "^"+hashed+"#[0-9a-f]{32}$", key)
				return
			}
			require.Equal(t, c.want, key)
		})
	}
}

// TestCallersWithoutAKey checks that callers without a key share one limiter, under the name that weir's own check
// uses.
func TestCallersWithoutAKey(t *testing.T) {
	c := newClient(t, weirtest.Start(t), client.Closed)
	_, err := c.SetPolicy(
		t.Context(), "api", client.PolicyTerms{Limits: []*client.Rule{client.FixedFirst(time.Hour, 2)}})
	require.NoError(t, err)
	var told []string
	api := serve(t, c, grpclimit.Options{
		Methods: []grpclimit.Method{{Name: check, Rule: client.Policy("api"), Key: grpclimit.ByMetadata("tenant")}},
		Decided: func(_ context.Context, method, key string, d client.Decision) {
			told = append(told, method+" "+key+map[bool]string{true: " admitted", false: " denied"}[d.Allowed])
		},
	})
	for range 3 {
		_, _ = api.Check(t.Context(), nil)
	}
	require.Equal(t, []string{"api anonymous admitted", "api anonymous admitted", "api anonymous denied"}, told)
	info, err := c.Inspect(t.Context(), "policy|api|0|anonymous")
	require.NoError(t, err)
	require.EqualValues(t, 2, info.Used)
}
