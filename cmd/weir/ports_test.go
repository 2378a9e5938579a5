package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/limiter"
)

// TestPageURL checks the address of the page that other nodes link to. It must be reachable from another machine, or
// empty.
func TestPageURL(t *testing.T) {
	for _, c := range []struct{ web, clients, want string }{
		{"http://10.0.0.1:6381", "10.0.0.1:6380", "http://10.0.0.1:6381"},
		{"https://[::]:6381", "10.0.0.1:6380", "https://10.0.0.1:6381"},
		{"http://0.0.0.0:6381", "weir-0.weir:6380", "http://weir-0.weir:6381"},
		{"http://[::]:6381", "[2001:db8::1]:6380", "http://[2001:db8::1]:6381"},
		{"http://127.0.0.1:6381", "127.0.0.1:6380", "http://127.0.0.1:6381"},
		{"http://127.0.0.1:6381", "10.0.0.1:6380", ""},
		{"http://[::]:6381", "[::]:6380", ""},
		{"", "10.0.0.1:6380", ""},
		{"http://[::]:6381", "nonsense", ""},
	} {
		require.Equal(t, c.want, pageURL(c.web, c.clients), "%s %s", c.web, c.clients)
	}
}

// TestAdvertisedAddresses checks that no node gives clients an address to which they cannot connect.
func TestAdvertisedAddresses(t *testing.T) {
	for _, one := range []struct{ listens, raft, want string }{
		{"10.0.0.1:6380", "10.0.0.9:6390", "10.0.0.1:6380"},
		{"127.0.0.1:6380", "10.0.0.9:6390", "127.0.0.1:6380"},
		{"0.0.0.0:6380", "10.0.0.9:6390", "10.0.0.9:6380"},
		{"[::]:6380", "node-a.example:6390", "node-a.example:6380"},
		{"[::]:6380", "[2001:db8::1]:6390", "[2001:db8::1]:6380"},
	} {
		got := advertised(one.listens, one.raft)
		require.Equal(t, one.want, got, one)
		require.True(t, limiter.Reachable(got))
	}
	for _, addr := range []string{"", ":6380", "0.0.0.0:6380", "[::]:6380", "[::0]:6380", "10.0.0.1:0", "10.0.0.1",
		"10.0.0.1:x", "10.0.0.1:65536", "[::ffff:0.0.0.0]:6380"} {
		require.False(t, limiter.Reachable(addr), addr)
	}
}
