package peer

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// openPort opens the port of group 0 on a hub of its own, which ends with the test. The hub logs what the port logs.
func openPort(
	t *testing.T, listen net.Listener, hub HubConfig, config PortConfig, serve func(conn net.Conn, from Identity),
) *Port {
	hub.Logger = config.Logger
	h := NewHub(listen, hub)
	t.Cleanup(func() { require.NoError(t, h.Close()) })
	p, err := h.Open(0, config, serve)
	require.NoError(t, err)
	return p
}
