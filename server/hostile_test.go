package server

import (
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/server/commands"
	"github.com/weir-project/weir/server/resp"
	"github.com/weir-project/weir/server/resp/resptest"
	"github.com/weir-project/weir/server/servertest"
)

// TestHostileFramesOnTheWire checks that each hostile frame gets the earlier replies, its error and a closed
// connection, and does not affect other clients.
func TestHostileFramesOnTheWire(t *testing.T) {
	srv := startWire(t, Config{MaxBulkBytes: 64 << 10}, nil) // as the streams say
	for name, c := range resptest.Hostile {
		t.Run(name, func(t *testing.T) {
			p := srv.dial(t)
			_, _ = io.WriteString(p, "PING\r\n"+oneDecision+c.Stream)
			p.Expect(pong + decisionAnswer)
			switch {
			case strings.HasSuffix(c.Err, "its first line"):
				assert.Equal(t, httpOnRESP, p.ExpectEnd())
			case strings.HasPrefix(name, "HTTP"):
				assert.Empty(t, p.ExpectEnd())
			default:
				assert.Equal(t, "-ERR Protocol error: "+c.Err+"\r\n", p.ExpectEnd())
			}
			srv.answers(t)
		})
	}
	assert.EqualValues(t, len(resptest.Hostile)-4, srv.Wire.ProtocolErrors.Load())
	assert.EqualValues(t, 4, srv.Wire.CrossProtocol.Load())
}

func TestHTTPIsLoggedOnce(t *testing.T) {
	var log servertest.LockedBuffer
	srv := startWire(t, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}, nil)
	for range 5 {
		p := srv.dial(t)
		p.Send("POST / HTTP/1.1\r\n")
		p.ExpectEnd()
	}
	assert.Equal(t, 1, strings.Count(log.String(), "HTTP request"))
}

func TestRandomBytes(t *testing.T) {
	srv := startWire(t, Config{}, nil)
	random := rand.New(rand.NewPCG(3, 4))
	const alphabet = "*$-0123456789\r\n\r\n\"'\\ :abPING\x00\xff"
	for range 200 {
		p := srv.dial(t)
		stream := make([]byte, random.IntN(5000))
		for i := range stream {
			stream[i] = alphabet[random.IntN(len(alphabet))]
		}
		_, _ = p.Write(stream)
		_ = p.CloseWrite()
		p.ExpectEnd()
	}
	srv.answers(t)
	assert.Zero(t, srv.Wire.Panics.Load())
}

// TestPooledBuffersAreBounded checks that clients continue with small buffers if there is no memory for larger ones.
// Only a command that does not fit a small buffer is rejected.
func TestPooledBuffersAreBounded(t *testing.T) {
	srv := startWire(t, Config{}, nil)
	srv.pools.Pooled.Store(resp.MaxPooledBytes)
	p := srv.dial(t)
	go func() {
		_, _ = io.WriteString(p, strings.Repeat(oneDecision, 2000)+"ECHO "+strings.Repeat("x", resp.SmallReadBytes)+
			"\r\n")
	}()
	p.Expect(strings.Repeat(decisionAnswer, 2000))
	assert.Contains(t, p.ExpectEnd(), resp.ErrReadMemory.Error())
	assert.EqualValues(t, resp.MaxPooledBytes, srv.pools.Pooled.Load())

	srv.pools.Pooled.Store(0)
	p = srv.dial(t)
	p.Send(strings.Repeat(oneDecision, 2000) + "QUIT\r\n")
	p.Expect(strings.Repeat(decisionAnswer, 2000) + "+OK\r\n")
	assert.Empty(t, p.ExpectEnd())
	require.Eventually(t, func() bool { return srv.connCount() == 0 }, servertest.Patience, time.Millisecond)
	assert.Zero(t, srv.pools.Pooled.Load(), "all is given back")
}

func TestLargestCommandPassesAndGivesItsMemoryBack(t *testing.T) {
	srv := startWire(t, Config{}, nil)
	p := srv.dial(t)
	kilobyte := strings.Repeat("k", 1000)
	args := append([]string{"ECHO"},
		strings.Split(strings.Repeat(kilobyte+" ", resp.MaxArgs-1), " ")[:resp.MaxArgs-1]...)
	p.Send(resptest.Multibulk(args...))
	p.Send("QUIT\r\n")
	assert.Contains(t, p.ExpectEnd(), "+OK\r\n")
	require.Eventually(t, func() bool { return srv.connCount() == 0 }, servertest.Patience, time.Millisecond)
	assert.Zero(t, srv.pools.Oversize.Load())
}

// TestLargeCommandsShareBoundedMemory checks that a client gets an error and is disconnected if the memory for large
// commands is used up, and that the next client is served once memory is free again.
func TestLargeCommandsShareBoundedMemory(t *testing.T) {
	srv := startWire(t, Config{}, nil)
	srv.pools.Oversize.Store(resp.MaxOversizeBytes)
	large := "*3\r\n$4\r\nECHO\r\n" + strings.Repeat("$60000\r\n"+strings.Repeat("x", 60000)+"\r\n", 2)
	p := srv.dial(t)
	_, _ = io.WriteString(p, large)
	assert.Contains(t, p.ExpectEnd(), resp.ErrReadMemory.Error())
	assert.EqualValues(t, resp.MaxOversizeBytes, srv.pools.Oversize.Load())

	srv.pools.Oversize.Store(0)
	p = srv.dial(t)
	p.Send(large + "PING\r\nQUIT\r\n")
	assert.Contains(t, p.ExpectEnd(), pong)
}

// TestReaderThatNeverReadsIsCut checks that the write timeout disconnects a client that does not read, and that
// others are served meanwhile.
func TestReaderThatNeverReadsIsCut(t *testing.T) {
	srv := startWire(t, Config{WriteTimeout: 300 * time.Millisecond}, nil)
	deaf := srv.dial(t)
	flooded := make(chan error, 1)
	go func() {
		chunk := strings.Repeat(resptest.Multibulk("ECHO", strings.Repeat("x", 30000)), 10)
		for {
			if _, err := io.WriteString(deaf, chunk); err != nil {
				flooded <- err
				return
			}
		}
	}()
	require.Eventually(t, func() bool {
		srv.answers(t)
		return srv.Wire.SlowReaders.Load() == 1
	}, servertest.Patience, time.Millisecond)
	assert.Error(t, <-flooded)
	require.Eventually(t, func() bool { return srv.connCount() == 0 }, servertest.Patience, time.Millisecond)
}

func TestMaxClients(t *testing.T) {
	srv := startWire(t, Config{MaxClients: 2}, nil)
	first, second := srv.dial(t), srv.dial(t)
	for _, p := range []*servertest.Peer{first, second} {
		p.Send("PING\r\n")
		p.Expect(pong)
	}
	assert.Equal(t, "-ERR max number of clients reached\r\n", srv.dial(t).ExpectEnd())
	assert.EqualValues(t, 1, srv.Wire.Rejected.Load())

	require.NoError(t, first.Close())
	require.Eventually(t, func() bool { return srv.connCount() == 1 }, servertest.Patience, time.Millisecond)
	srv.answers(t)
}

func TestPanicCostsOneConnection(t *testing.T) {
	var log servertest.LockedBuffer
	lim := &wireLimiter{}
	lim.decide = func(ops []engine.Op, out []engine.Decision) error { panic("a bug") }
	srv := startWire(t, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}, lim)
	other := srv.dial(t)
	other.Send("PING\r\n")
	other.Expect(pong)

	p := srv.dial(t)
	p.Send("PING\r\n" + oneDecision + oneDecision)
	p.Expect(pong + "-ERR internal error\r\n")
	p.ExpectEnd()

	other.Send("PING\r\n")
	other.Expect(pong)
	assert.EqualValues(t, 1, srv.Wire.Panics.Load())
	assert.Contains(t, log.String(), "a bug")
	assert.Contains(t, log.String(), "hostile_test.go", "the stack is logged")
}

// TestPanicTearsNoReply checks that the partial reply of a command that panicked is not sent.
func TestPanicTearsNoReply(t *testing.T) {
	srv, err := New(Config{Logger: slog.New(slog.DiscardHandler)}, &wireLimiter{})
	require.NoError(t, err)
	nc := &replayConn{written: new(strings.Builder)}
	c := newConn(srv, nc)
	c.guard(func() {
		c.sess = commands.NewSession(srv.Shared, c, &c.replies)
		c.replies.Out = append(c.replies.Out, pong...)
		c.wholeLen = len(c.replies.Out)
		c.replies.Out = append(c.replies.Out, "*5\r\n:1\r\n"...)
		panic("a bug")
	})
	assert.Equal(t, pong+"-ERR internal error\r\n", nc.written.String())
	c.sess.Close()
}

// TestRepliesAreFlushedAtAThreshold checks that the server writes replies in pieces of bounded size, however many
// commands one read contains.
func TestRepliesAreFlushedAtAThreshold(t *testing.T) {
	srv, err := New(Config{}, &wireLimiter{})
	require.NoError(t, err)
	nc := &replayConn{pipeline: strings.Repeat("PING\r\n", 100_000), rest: 2}
	c := newConn(srv, nc)
	require.NoError(t, srv.enroll(c))
	c.start()
	srv.Running.Wait()
	assert.Greater(t, nc.largest, resp.MediumReadBytes)
	assert.LessOrEqual(t, nc.largest, flushBytes+len(pong))
	assert.EqualValues(t, 200_000*len(pong), srv.Wire.OutputBytes.Load())
}

// TestAuthTimeout checks that AuthTimeout disconnects a client before its login only. Afterwards it may be idle.
func TestAuthTimeout(t *testing.T) {
	// Each client sends its command within this time on a busy machine too.
	srv := startWire(t, Config{Password: "secret", AuthTimeout: 3 * time.Second}, nil)
	idle := srv.dial(t)
	idle.Send("AUTH secret\r\n")
	idle.Expect("+OK\r\n")
	late := srv.dial(t)
	late.Send("AUTH wrong\r\n")
	assert.Contains(t, late.ExpectEnd(), "-WRONGPASS")
	assert.EqualValues(t, 1, srv.Wire.AuthTimeouts.Load())
	idle.Send("PING\r\n")
	idle.Expect(pong)
}

func TestLimitsBeforeAndAfterAuth(t *testing.T) {
	srv := startWire(t, Config{Password: "secret"}, nil)
	long := resptest.Multibulk("ECHO", strings.Repeat("x", resp.PreAuthBulkBytes+1))
	p := srv.dial(t)
	p.Send(long)
	assert.Equal(t, "-ERR Protocol error: unauthenticated bulk length\r\n", p.ExpectEnd())

	p = srv.dial(t)
	p.Send(resptest.Multibulk("AUTH", "secret") + long)
	p.Expect("+OK\r\n$1025\r\n")
}

// TestAcceptErrorsAreWaitedOut checks that the server retries after errors of accept, with a growing pause.
func TestAcceptErrorsAreWaitedOut(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ln := &failingListener{Listener: inner, failures: 4}
	srv := serveWire(t, Config{}, nil, ln)
	srv.answers(t)
	assert.EqualValues(t, 4, srv.Wire.AcceptErrors.Load())
	assert.GreaterOrEqual(t, time.Since(ln.first), (1+2+4+8)*acceptPauseMin)
}

type failingListener struct {
	net.Listener
	failures int
	first    time.Time
}

func (l *failingListener) Accept() (net.Conn, error) {
	if l.failures == 0 {
		return l.Listener.Accept()
	}
	if l.first.IsZero() {
		l.first = time.Now()
	}
	l.failures--
	return nil, errors.New("too many open files")
}
