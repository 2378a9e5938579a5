package client_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/internal/weirtest"
)

// TestFrom checks that a block of the client's address denies every key. The remembered denial must not deny another
// address.
func TestFrom(t *testing.T) {
	c := newClient(t, weirtest.Start(t), client.Options{})
	bad, good := netip.MustParseAddr("::ffff:192.0.2.66"), netip.MustParseAddr("192.0.2.67")
	rule := client.TokenBucket(client.PerSecond(1), 10)
	require.NoError(t, c.BlockEverywhere(t.Context(), "ip:192.0.2.66", time.Hour, "attack"))
	for range 2 { // the second answer comes from memory
		require.False(t, decide(t, c, client.Request{Rule: rule, Key: "user:42", From: bad}).Allowed)
		require.True(t, decide(t, c, client.Request{Rule: rule, Key: "user:42", From: good}).Allowed)
		require.True(t, decide(t, c, client.Request{Rule: rule, Key: "user:42"}).Allowed)
		require.False(t, decide(t, c, client.Request{Rule: rule, Key: "user:42", From: bad}).Allowed)
	}
	_, err := c.Unblock(t.Context(), "ip:192.0.2.66")
	require.NoError(t, err)
	require.True(t, decide(t, c, client.Request{Rule: rule, Key: "user:42", From: bad}).Allowed,
		"the denial must not be remembered after the address was unblocked")
}
