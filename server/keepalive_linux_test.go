package server

import (
	"crypto/tls"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/server/commands"
)

// tellingListener provides a second descriptor of each connection that it accepted.
type tellingListener struct {
	net.Listener
	accepted chan *os.File
}

func (l *tellingListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	second, err := nc.(*net.TCPConn).File()
	if err == nil {
		l.accepted <- second
	}
	return nc, err
}

func newTellingListener(t *testing.T) *tellingListener {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return &tellingListener{ln, make(chan *os.File, 1)}
}

// TestVanishedPeersAreFound checks that the kernel's keepalive probes have the settings of limits.go, and not the
// defaults of package net.
func TestVanishedPeersAreFound(t *testing.T) {
	t.Run("plain", func(t *testing.T) {
		ln := newTellingListener(t)
		p := serveWire(t, Config{}, nil, ln).dial(t)
		p.Send("PING\r\n")
		p.Expect(pong)
		requireProbed(t, <-ln.accepted)
	})
	t.Run("TLS", func(t *testing.T) {
		ln := newTellingListener(t)
		serveTLS(t, Config{}, tls.NoClientCert, ln).servesTLS(t)
		requireProbed(t, <-ln.accepted)
	})
}

func requireProbed(t *testing.T, f *os.File) {
	defer f.Close()
	raw, err := f.SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) {
		for option, want := range map[int]int{
			syscall.TCP_KEEPIDLE:  int(commands.KeepAliveIdle.Seconds()),
			syscall.TCP_KEEPINTVL: int(keepAliveEvery.Seconds()),
			syscall.TCP_KEEPCNT:   keepAliveCount,
		} {
			got, err := syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, option)
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
	}))
}
