package server

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/server/servertest"
)

// stuckLimiter blocks in Clear until the test releases it.
type stuckLimiter struct {
	wireLimiter
	clearing, release chan struct{}
}

func (l *stuckLimiter) Clear() error {
	l.clearing <- struct{}{}
	<-l.release
	return nil
}

// TestASlowCommandKeepsNobodyWaiting checks that slow commands delay no other client, even if there are more of them
// than pollers.
func TestASlowCommandKeepsNobodyWaiting(t *testing.T) {
	lim := &stuckLimiter{clearing: make(chan struct{}), release: make(chan struct{})}
	srv := startWire(t, Config{}, lim)
	slow := make([]*servertest.Peer, runtime.GOMAXPROCS(0)+1)
	for i := range slow {
		slow[i] = srv.dial(t)
		slow[i].Send("FLUSHALL\r\nPING\r\n")
		<-lim.clearing
	}
	other := srv.dial(t)
	for range 20 {
		other.Send(oneDecision)
		other.Expect(decisionAnswer)
	}
	close(lim.release)
	for _, p := range slow {
		p.Expect("+OK\r\n" + pong)
	}
}

// TestWaitingClientsHaveNoGoroutine checks that a waiting client needs no goroutine on systems with pollers.
func TestWaitingClientsHaveNoGoroutine(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("pollers need Linux")
	}
	srv := startWire(t, Config{}, nil)
	before := runtime.NumGoroutine()
	for range 50 {
		p := srv.dial(t)
		p.Send(oneDecision)
		p.Expect(decisionAnswer)
	}
	require.Equal(t, 50, srv.connCount())
	assert.Eventually(t, func() bool { return runtime.NumGoroutine() < before+10 },
		servertest.Patience, time.Millisecond)
}
