package peer

import (
	"context"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// deadlines records the deadlines of writes, which fail.
type deadlines struct {
	net.Conn
	write  []time.Time
	closed bool
}

func (d *deadlines) SetWriteDeadline(at time.Time) error { d.write = append(d.write, at); return nil }
func (d *deadlines) Write([]byte) (int, error)           { return 0, os.ErrDeadlineExceeded }
func (d *deadlines) Close() error                        { d.closed = true; return nil }

// TestWritesAreBounded checks that a peer which does not read delays calls for a bounded time only. A connection that
// lost an answer is closed.
func TestWritesAreBounded(t *testing.T) {
	conn := &deadlines{}
	require.Error(t, (&link{conn: conn}).write([]byte("x")))
	require.Len(t, conn.write, 1)
	require.InDelta(t, 0, time.Until(conn.write[0])-writeTimeout, float64(time.Minute))
	a := answerer{conn: conn, handle: func(Identity, byte, []byte) (byte, []byte) { return 1, nil }}
	a.answer(frame{number: 1})
	require.True(t, conn.closed)
}

// TestNoDeadlineStays checks that the deadline of a handshake does not end the connection later, on either side.
func TestNoDeadlineStays(t *testing.T) {
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	accepted, dialed := &noting{}, &noting{}
	b := openPort(t, notingListener{listen, accepted}, HubConfig{Secret: []byte("secret")}, PortConfig{
		Self: func() Identity { return Identity{NodeID: "b"} }, Logger: slog.New(slog.DiscardHandler),
	}, func(net.Conn, Identity) {})
	defer b.Close()
	a, _ := open(t, "a", "one", "secret")
	dial := a.hub.config.Dialer
	a.hub.config.Dialer = func(ctx context.Context, addr string) (net.Conn, error) {
		conn, err := dial(ctx, addr)
		return dialed.on(conn), err
	}
	conn, _, err := a.Dial(context.Background(), b.Addr().String(), CallService)
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF, "the service must have ended")
	for _, side := range []*noting{accepted, dialed} {
		deadlines := side.deadlines()
		require.Len(t, deadlines, 2)
		require.False(t, deadlines[0].IsZero())
		require.True(t, deadlines[1].IsZero())
	}
}

// noting records the deadlines of a connection.
type noting struct {
	net.Conn
	mu  sync.Mutex
	all []time.Time
}

func (n *noting) on(conn net.Conn) net.Conn {
	n.Conn = conn
	return n
}

func (n *noting) deadlines() []time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.all
}

func (n *noting) SetDeadline(at time.Time) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, at)
	return n.Conn.SetDeadline(at)
}

// notingListener accepts one connection and records its deadlines.
type notingListener struct {
	net.Listener
	conn *noting
}

func (l notingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.conn.on(conn), nil
}

// TestASilentNode checks that a dial to a silent node ends with the caller's context. The deadline does not bound the
// connect of TCP here, because on a busy machine it would pass there.
func TestASilentNode(t *testing.T) {
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listen.Close()
	a, _ := open(t, "a", "one", "secret")
	dial := a.hub.config.Dialer
	a.hub.config.Dialer = func(ctx context.Context, addr string) (net.Conn, error) {
		return dial(context.WithoutCancel(ctx), addr)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	_, _, err = a.Dial(ctx, listen.Addr().String(), CallService)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.Zero(t, a.held())
}
