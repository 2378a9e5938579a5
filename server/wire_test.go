package server

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/commands"
	"github.com/weir-project/weir/server/servertest"
)

// wireLimiter allows everything. Its Decide can be replaced.
type wireLimiter struct {
	limiter.Limiter
	decide func(ops []engine.Op, out []engine.Decision) error
}

func (l *wireLimiter) Now() engine.Stamp { return engine.Stamp{NowNs: 1} }

func (l *wireLimiter) Decide(ops []engine.Op, out []engine.Decision) error {
	if l.decide != nil {
		return l.decide(ops, out)
	}
	for i := range ops {
		out[i] = engine.Decision{Allowed: 1, Remaining: 9, ResetMs: 1000, Limit: 10}
	}
	return nil
}

const (
	oneDecision    = "RL.TOKENBUCKET k 10/s 10\r\n"
	decisionAnswer = "*5\r\n:1\r\n:9\r\n:0\r\n:1000\r\n:10\r\n"
	pong           = "+PONG\r\n"
)

// wireServer is a server on a loopback port that ends with the test.
type wireServer struct {
	*Server
	addr string
}

func startWire(t testing.TB, cfg Config, lim limiter.Limiter) *wireServer {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return serveWire(t, cfg, lim, ln)
}

func serveWire(t testing.TB, cfg Config, lim limiter.Limiter, ln net.Listener) *wireServer {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	if lim == nil {
		lim = &wireLimiter{}
	}
	srv, err := New(cfg, lim)
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(ln) }()
	t.Cleanup(func() {
		require.NoError(t, srv.Close())
		require.NoError(t, <-ended)
	})
	return &wireServer{Server: srv, addr: ln.Addr().String()}
}

func (s *wireServer) dial(t testing.TB) *servertest.Peer {
	t.Helper()
	nc, err := net.Dial("tcp", s.addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = nc.Close() })
	require.NoError(t, nc.SetDeadline(time.Now().Add(servertest.Patience)))
	return &servertest.Peer{Conn: nc, T: t, In: bufio.NewReader(nc)}
}

// answers checks that the server still serves another client.
func (s *wireServer) answers(t testing.TB) {
	t.Helper()
	p := s.dial(t)
	p.Send("PING\r\n")
	p.Expect(pong)
	_ = p.Close()
}

func (s *wireServer) connCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

func TestPipelineKeepsItsOrder(t *testing.T) {
	var batches []int
	lim := &wireLimiter{}
	lim.decide = func(ops []engine.Op, out []engine.Decision) error {
		batches = append(batches, len(ops))
		return (&wireLimiter{}).Decide(ops, out)
	}
	p := startWire(t, Config{}, lim).dial(t)
	p.Send(oneDecision + oneDecision + "ECHO hi\r\n" + oneDecision + "*0\r\n\r\nPING\r\n")
	p.Expect(decisionAnswer + decisionAnswer + "$2\r\nhi\r\n" + decisionAnswer + pong)
	require.NoError(t, p.Close())
}

func TestBatchesAreBounded(t *testing.T) {
	largest := 0
	lim := &wireLimiter{}
	lim.decide = func(ops []engine.Op, out []engine.Decision) error {
		largest = max(largest, len(ops))
		return (&wireLimiter{}).Decide(ops, out)
	}
	srv := startWire(t, Config{}, lim)
	p := srv.dial(t)
	const n = 10 * commands.MaxBatch
	go func() { _, _ = io.WriteString(p, strings.Repeat(oneDecision, n)+"QUIT\r\n") }()
	p.Expect(strings.Repeat(decisionAnswer, n) + "+OK\r\n")
	assert.Empty(t, p.ExpectEnd())
	assert.LessOrEqual(t, largest, commands.MaxBatch)
	assert.Greater(t, largest, 100, "a pipeline is decided in batches")
}

func TestProtectedMode(t *testing.T) {
	ln := &remoteListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	srv := serveWire(t, Config{ProtectedMode: true}, nil, ln)
	ours, theirs := net.Pipe()
	defer func() { _ = ours.Close() }()
	ln.conns <- remoteConn{theirs}
	reply, _ := io.ReadAll(ours)
	assert.Contains(t, string(reply), "-DENIED weir runs in protected mode")
	assert.EqualValues(t, 1, srv.Wire.Denied.Load())

	open := serveWire(t, Config{ProtectedMode: true, Password: "secret"}, nil,
		&remoteListener{conns: ln.conns, closed: make(chan struct{})})
	_ = srv.Close()
	ours2, theirs2 := net.Pipe()
	defer func() { _ = ours2.Close() }()
	ln.conns <- remoteConn{theirs2}
	p := &servertest.Peer{Conn: ours2, T: t, In: bufio.NewReader(ours2)}
	p.Send("AUTH secret\r\n")
	p.Expect("+OK\r\n")
	assert.Zero(t, open.Wire.Denied.Load())
}

// remoteListener returns connections with a remote address of another machine.
type remoteListener struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (l *remoteListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}
func (l *remoteListener) Close() error   { close(l.closed); return nil }
func (l *remoteListener) Addr() net.Addr { return &net.TCPAddr{} }

type remoteConn struct{ net.Conn }

func (remoteConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 7} }

func TestBadConfig(t *testing.T) {
	for name, cfg := range map[string]Config{
		"clients":       {MaxClients: -1},
		"tiny bulk":     {MaxBulkBytes: 10},
		"huge bulk":     {MaxBulkBytes: LargestMaxBulkBytes + 1},
		"output":        {MaxOutputBytes: 1},
		"write timeout": {WriteTimeout: -time.Second},
		"auth timeout":  {AuthTimeout: -time.Second},
	} {
		_, err := New(cfg, &wireLimiter{})
		assert.ErrorIs(t, err, commands.ErrBadConfig, name)
	}
}

var noPolicies engine.Policies

func (*wireLimiter) Policies() *engine.Policies { return &noPolicies }
