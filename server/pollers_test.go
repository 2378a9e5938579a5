package server

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// stuckLimiter clears for ever, or until it is let go.
type stuckLimiter struct {
	wireLimiter
	clearing, release chan struct{}
}

func (l *stuckLimiter) Clear() error {
	l.clearing <- struct{}{}
	<-l.release
	return nil
}

// Commands that take long, as many as there can be pollers and more, keep nobody
// else waiting.
func TestASlowCommandKeepsNobodyWaiting(t *testing.T) {
	lim := &stuckLimiter{clearing: make(chan struct{}), release: make(chan struct{})}
	srv := startWire(t, Config{}, lim)
	slow := make([]*peer, runtime.GOMAXPROCS(0)+1)
	for i := range slow {
		slow[i] = srv.dial(t)
		slow[i].send("FLUSHALL\r\nPING\r\n")
		<-lim.clearing
	}
	other := srv.dial(t)
	for range 20 {
		other.send(oneDecision)
		other.expect(decisionAnswer)
	}
	close(lim.release)
	for _, p := range slow {
		p.expect("+OK\r\n" + pong)
	}
}

// A client that waits costs no goroutine, where pollers are to be had.
func TestWaitingClientsHaveNoGoroutine(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("pollers need Linux")
	}
	srv := startWire(t, Config{}, nil)
	before := runtime.NumGoroutine()
	for range 50 {
		p := srv.dial(t)
		p.send(oneDecision)
		p.expect(decisionAnswer)
	}
	require.Equal(t, 50, srv.connCount())
	assert.Eventually(t, func() bool { return runtime.NumGoroutine() < before+10 }, testWait, time.Millisecond)
}
