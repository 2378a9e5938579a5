package clientaddr

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestClients(t *testing.T) {
	for addr, want := range map[string]string{
		"192.0.2.1": "192.0.2.1", "::ffff:192.0.2.1": "192.0.2.1", "2001:db8:1:2:3::4%eth0": "2001:db8:1:2::/64",
		"64:ff9b::192.0.2.1": "192.0.2.1", "64:ff9b::c000:201%eth0": "192.0.2.1", "64:ff9b::": "0.0.0.0",
		"64:ff9b:0:0:1::1": "64:ff9b::/64", "64:ff9b:1::192.0.2.1": "64:ff9b:1::/64", // other prefixes than the well-known
	} {
		require.Equal(t, want, string(Append(nil, netip.MustParseAddr(addr))), addr)
	}
	require.False(t, Plain(netip.Addr{}).IsValid())
}
