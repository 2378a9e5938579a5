package server

import (
	"context"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/server/envoyrls"
	"github.com/weir-project/weir/server/httpapi"
	"github.com/weir-project/weir/server/resp/resptest"
	"github.com/weir-project/weir/server/servertest"
)

// TestDrainLosesNoReply checks that the server answers every decided command, although it must stop in the middle of
// endless pipelines.
func TestDrainLosesNoReply(t *testing.T) {
	const clients = 20
	decided := make(chan int, 1)
	decided <- 0
	begun := make(chan struct{}, 1)
	lim := &wireLimiter{}
	lim.decide = func(ops []engine.Op, out []engine.Decision) error {
		decided <- <-decided + len(ops)
		select {
		case begun <- struct{}{}:
		default:
		}
		return (&wireLimiter{}).Decide(ops, out)
	}
	srv := startWire(t, Config{}, lim)
	replies := make(chan string, clients)
	for range clients {
		p := srv.dial(t)
		go func() {
			chunk := strings.Repeat(oneDecision, 700)
			for {
				if _, err := io.WriteString(p, chunk); err != nil {
					return
				}
			}
		}()
		go func() {
			all, _ := io.ReadAll(p.In)
			replies <- string(all)
		}()
	}
	<-begun
	ctx, cancel := context.WithTimeout(context.Background(), servertest.Patience)
	defer cancel()
	require.NoError(t, srv.Shutdown(ctx))

	answered := 0
	for range clients {
		all := <-replies
		n := strings.Count(all, decisionAnswer)
		assert.Len(t, all, n*len(decisionAnswer), "no reply is torn")
		answered += n
	}
	assert.Equal(t, <-decided, answered)
	_, err := net.Dial("tcp", srv.addr)
	assert.Error(t, err, "nobody listens any more")
}

func TestDrainEndsIdleConnections(t *testing.T) {
	srv := startWire(t, Config{}, nil)
	idle, halfway := srv.dial(t), srv.dial(t)
	halfway.Send("PING\r\n*2\r\n$4\r\nEC")
	halfway.Expect(pong)
	idle.Send("PING\r\n")
	idle.Expect(pong)
	require.NoError(t, srv.Shutdown(t.Context()))
	assert.Empty(t, idle.ExpectEnd())
	assert.Empty(t, halfway.ExpectEnd())
}

// TestDrainWaitsForTheDecisionUnderWay checks that a stopping server first answers a decision that is in progress.
func TestDrainWaitsForTheDecisionUnderWay(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	lim := &wireLimiter{}
	lim.decide = func(ops []engine.Op, out []engine.Decision) error {
		close(entered)
		<-leave
		return (&wireLimiter{}).Decide(ops, out)
	}
	srv := startWire(t, Config{}, lim)
	p := srv.dial(t)
	p.Send(oneDecision)
	<-entered
	ended := make(chan error, 1)
	go func() { ended <- srv.Shutdown(context.Background()) }()
	<-srv.Stop
	select {
	case <-ended:
		t.Fatal("did not wait")
	default:
	}
	close(leave)
	p.Expect(decisionAnswer)
	assert.Empty(t, p.ExpectEnd())
	require.NoError(t, <-ended)
}

// TestShutdownCutsWhatDoesNotEnd checks that the server closes the remaining connections when the drain time is over.
func TestShutdownCutsWhatDoesNotEnd(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	lim := &wireLimiter{}
	lim.decide = func([]engine.Op, []engine.Decision) error {
		close(entered)
		<-leave
		return nil
	}
	srv := startWire(t, Config{}, lim)
	p := srv.dial(t)
	p.Send(oneDecision)
	<-entered
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, srv.Shutdown(ctx), context.Canceled)
	assert.Empty(t, p.ExpectEnd())
	close(leave)
}

// TestServeAfterClose checks that each door closes a listener that it gets after its stop, and calls that no error.
func TestServeAfterClose(t *testing.T) {
	srv, err := New(Config{}, servertest.NewTableLimiter())
	require.NoError(t, err)
	web, err := httpapi.New(srv.Service, srv, httpapi.CheckOff, false)
	require.NoError(t, err)
	envoys := envoyrls.New(srv.Service, nil)
	envoys.Shutdown(t.Context())
	require.NoError(t, web.Close())
	require.NoError(t, srv.Close())
	for door, serve := range map[string]func(net.Listener) error{
		"RESP": srv.Serve, "HTTP": web.Serve, "Envoy": envoys.Serve,
	} {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		require.NoError(t, serve(ln), door)
		_, err = ln.Accept()
		require.ErrorIs(t, err, net.ErrClosed, door)
	}
}

func TestServeEndsWithItsListener(t *testing.T) {
	srv, err := New(Config{}, &wireLimiter{})
	require.NoError(t, err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan error)
	go func() { ended <- srv.Serve(ln) }()
	require.NoError(t, ln.Close())
	assert.ErrorIs(t, <-ended, net.ErrClosed)
	require.NoError(t, srv.Close())
}

// TestHangingUpDeliversWhatWasWritten checks that the last replies arrive, although the client has sent more than the
// server read, and reads only long after the server hung up. A close with unread input would discard replies that do
// not fit the client's buffer.
func TestHangingUpDeliversWhatWasWritten(t *testing.T) {
	srv := startWire(t, Config{}, nil)
	value := strings.Repeat("v", 50_000)
	dialer := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) {
			_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096)
		})
	}}
	for range 5 {
		nc, err := dialer.Dial("tcp", srv.addr)
		require.NoError(t, err)
		_, err = io.WriteString(nc, resptest.Multibulk("ECHO", value)+"QUIT\r\n"+strings.Repeat("PING\r\n", 20_000))
		require.NoError(t, err)
		require.Eventually(t, func() bool { return srv.connCount() == 0 }, servertest.Patience, time.Millisecond)
		got, err := io.ReadAll(nc)
		require.NoError(t, err)
		require.NoError(t, nc.Close())
		assert.Equal(t, len("$50000\r\n"+value+"\r\n+OK\r\n"), len(got))
	}
}
