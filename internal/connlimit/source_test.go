package connlimit

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSourceOf(t *testing.T) {
	for addr, want := range map[string]string{
		"192.0.2.7": "192.0.2.7", "::ffff:192.0.2.7": "192.0.2.7",
		"2001:db8:1:2:3:4:5:6": "2001:db8:1:2::", "fe80::1%lo": "fe80::",
	} {
		ip, err := net.ResolveIPAddr("ip", addr)
		require.NoError(t, err)
		require.Equal(t, want, SourceOf((&net.TCPAddr{IP: ip.IP, Zone: ip.Zone, Port: 9}).String()).String(), addr)
	}
	require.False(t, SourceOf("/run/x").IsValid())
}
