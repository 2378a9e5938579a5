package main

import (
	"testing"

	"github.com/stretchr/testify/require"
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
