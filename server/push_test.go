package server

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/server/servertest"
)

// onlyConn returns the connection of the only client.
func (s *wireServer) onlyConn(t testing.TB) *conn {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Len(t, s.conns, 1)
	for c := range s.conns {
		return c
	}
	return nil
}

func (s *wireServer) dialOne(t testing.TB) (*servertest.Peer, *conn) {
	t.Helper()
	p := s.dial(t)
	p.Send("PING\r\n")
	p.Expect(pong)
	return p, s.onlyConn(t)
}

func TestPushedMessagesArriveInOrderAmongReplies(t *testing.T) {
	const n = 20_000
	p, c := startWire(t, Config{}, nil).dialOne(t)
	go func() {
		for i := 0; i < n; {
			if c.pushed() < flushBytes { // the test must not overflow the queue
				assert.True(t, c.Push(fmt.Appendf(nil, "+m%d\r\n", i)))
				i++
			}
		}
	}()
	go func() {
		for range 1000 {
			p.Send("PING\r\nPING\r\n")
		}
	}()
	messages, pongs := 0, 0
	for messages < n || pongs < 2000 {
		line, err := p.In.ReadString('\n')
		require.NoError(t, err)
		if line == pong {
			pongs++
			continue
		}
		require.Equal(t, fmt.Sprintf("+m%d\r\n", messages), line)
		messages++
	}
}

// pushed returns the number of bytes of waiting messages.
func (c *conn) pushed() int {
	c.pushes.mu.Lock()
	defer c.pushes.mu.Unlock()
	return len(c.pushes.buf)
}

// TestPushDuringACommandComesAfterItsReply checks the order of pushes and replies. A message pushed before a command
// is read precedes the reply. A message pushed while the command runs follows it, so a subscription's confirmation
// precedes its first message.
func TestPushDuringACommandComesAfterItsReply(t *testing.T) {
	var c *conn
	lim := &wireLimiter{}
	lim.decide = func(ops []engine.Op, out []engine.Decision) error {
		assert.True(t, c.Push([]byte("+pushed\r\n")))
		return (&wireLimiter{}).Decide(ops, out)
	}
	p, only := startWire(t, Config{}, lim).dialOne(t)
	c = only
	for range 100 {
		p.Send(oneDecision)
		p.Expect(decisionAnswer + "+pushed\r\n")
	}
	p.Send(oneDecision + "PING\r\n" + oneDecision)
	p.Expect(decisionAnswer + pong + "+pushed\r\n" + decisionAnswer + "+pushed\r\n")
}

// TestPushOverflowCutsTheClient checks that a slow reader of events is disconnected, and that the sender of the
// events does not wait.
func TestPushOverflowCutsTheClient(t *testing.T) {
	srv := startWire(t, Config{MaxOutputBytes: flushBytes}, nil)
	p, c := srv.dialOne(t)
	message := []byte("+" + strings.Repeat("x", 1000) + "\r\n")
	pushed := 0
	for c.Push(message) {
		pushed++
	}
	assert.False(t, c.Push(message))
	assert.Less(t, pushed, 100_000, "what fits the queue and the sockets")
	assert.EqualValues(t, 1, srv.Wire.PushOverflows.Load())
	p.ExpectEnd()
	require.Eventually(t, func() bool { return srv.connCount() == 0 }, servertest.Patience, time.Millisecond)
	srv.answers(t)
}

func TestPushToAConnectionThatEnds(t *testing.T) {
	srv := startWire(t, Config{}, nil)
	for range 50 {
		p, c := srv.dialOne(t)
		var pushers sync.WaitGroup
		for range 4 {
			pushers.Go(func() {
				for c.Push([]byte("+m\r\n")) {
				}
			})
		}
		go func() { _, _ = p.In.WriteTo(nothing{}) }()
		require.NoError(t, p.Close())
		pushers.Wait()
		require.Eventually(t, func() bool { return srv.connCount() == 0 }, servertest.Patience, time.Millisecond)
	}
}

type nothing struct{}

func (nothing) Write(b []byte) (int, error) { return len(b), nil }
