package listener

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExposure(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:1", "127.8.8.8:1", "[::1]:1", "localhost:1"} {
		require.NoError(t, CheckExposure("--listen", addr, false, true), addr)
	}
	for _, addr := range []string{":1", "0.0.0.0:1", "[::]:1", "192.0.2.1:1", "nonsense"} {
		err := CheckExposure("--listen", addr, false, true)
		require.ErrorIs(t, err, ErrExposed, addr)
		require.ErrorContains(t, err, "--listen is "+addr)
		require.ErrorContains(t, err, "--requirepass-file")
		require.ErrorContains(t, err, "--protected-mode=false")
		require.NoError(t, CheckExposure("--listen", addr, true, true))
		require.NoError(t, CheckExposure("--listen", addr, false, false))
	}
}

func TestHowToConnect(t *testing.T) {
	for _, c := range []struct {
		ip       string
		password bool
		secure   bool
		want     string
	}{
		{"127.0.0.1", false, false, "redis-cli -p 6380"},
		{"0.0.0.0", false, false, "redis-cli -p 6380"},
		{"::", true, false, "redis-cli -p 6380 --askpass"},
		{"192.0.2.7", false, false, "redis-cli -h 192.0.2.7 -p 6380"},
		{"::1", false, false, "redis-cli -h ::1 -p 6380"},
		{"127.0.0.1", true, true, "redis-cli -p 6380 --tls --askpass"},
	} {
		addr := &net.TCPAddr{IP: net.ParseIP(c.ip), Port: 6380}
		require.Equal(t, c.want, HowToConnect(addr, c.password, c.secure))
	}
}

// TestAUnixSocketOfAnotherStays checks that a listener removes its own socket only.
func TestAUnixSocketOfAnotherStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	first, err := ListenUnix("--unix-socket", path, 0o600)
	require.NoError(t, err)
	require.NoError(t, os.Remove(path))
	second, err := ListenUnix("--unix-socket", path, 0o600)
	require.NoError(t, err)
	require.NoError(t, first.Close())
	require.FileExists(t, path)
	require.NoError(t, second.Close())
	require.NoFileExists(t, path)
}
