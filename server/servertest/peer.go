package servertest

import (
	"bufio"
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Patience bounds the waits of a test. No result depends on how much of it is used.
const Patience = 20 * time.Second

// Peer is a client that sends and expects bytes.
type Peer struct {
	net.Conn
	T  testing.TB
	In *bufio.Reader
}

// CloseWrite announces that the client sends no more.
func (p *Peer) CloseWrite() error { return p.Conn.(*net.TCPConn).CloseWrite() }

func (p *Peer) Send(bytes string) {
	p.T.Helper()
	_, err := io.WriteString(p, bytes)
	require.NoError(p.T, err)
}

// Expect reads exactly these bytes.
func (p *Peer) Expect(bytes string) {
	p.T.Helper()
	got := make([]byte, len(bytes))
	n, err := io.ReadFull(p.In, got)
	require.NoError(p.T, err, "after %q", got[:n])
	for i := range got {
		require.True(p.T, got[i] == bytes[i], "at %d: %.200q, not %.200q", i, got[i:], bytes[i:])
	}
}

// ExpectEnd reads the remaining bytes until the server closes the connection.
func (p *Peer) ExpectEnd() string {
	p.T.Helper()
	rest, err := io.ReadAll(p.In)
	if err != nil {
		require.NotErrorIs(p.T, err, context.DeadlineExceeded)
		require.Contains(p.T, err.Error(), "reset")
	}
	return string(rest)
}

// DialAs connects from one of this machine's addresses.
func DialAs(t testing.TB, from, to string) *Peer {
	t.Helper()
	nc, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).Dial("tcp", to)
	require.NoError(t, err)
	t.Cleanup(func() { _ = nc.Close() })
	require.NoError(t, nc.SetDeadline(time.Now().Add(Patience)))
	return &Peer{Conn: nc, T: t, In: bufio.NewReader(nc)}
}
