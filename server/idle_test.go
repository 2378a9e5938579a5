package server

import (
	"io"
	"net"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/server/resp"
	"github.com/weir-project/weir/server/resp/resptest"
	"github.com/weir-project/weir/server/servertest"
)

// liveBytes returns the bytes of heap objects and goroutine stacks.
func liveBytes() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // the second one empties pools and shrinks stacks
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// TestIdleConnectionsHoldLittle checks that ten thousand clients which were busy once use little memory when idle,
// and still work. Both ends of each connection are in this process, so the limit on file descriptors bounds their
// number.
func TestIdleConnectionsHoldLittle(t *testing.T) {
	const most = 12 << 10 // bytes per connection, including the test's end
	n := 10_000
	if testing.Short() {
		n = 1000
	}
	var files syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files))
	n = min(n, int(min(files.Cur, 1<<20)-200)/2)

	srv := startWire(t, Config{}, nil)
	before := liveBytes()
	clients := make([]net.Conn, n)
	value := strings.Repeat("v", resp.MediumReadBytes+1) // fills the small and the medium buffer
	burst, answer := resptest.Multibulk("ECHO", value), make([]byte, len("$16385\r\n\r\n")+len(value))
	for i := range clients {
		nc, err := net.Dial("tcp", srv.addr)
		require.NoError(t, err)
		defer func() { _ = nc.Close() }()
		clients[i] = nc
		_, err = io.WriteString(nc, burst)
		require.NoError(t, err)
		_, err = io.ReadFull(nc, answer)
		require.NoError(t, err)
	}
	busy := liveBytes()
	srv.sweepTwice()
	require.Eventually(t, func() bool { return srv.borrowed() == 0 }, servertest.Patience, 10*time.Millisecond)
	each := (liveBytes() - before) / int64(n)
	t.Logf("%d connections: %d bytes each after a burst, %d idle", n, (busy-before)/int64(n), each)
	assert.Less(t, each, int64(most))

	for i := range clients {
		_, err := io.WriteString(clients[i], "PING\r\n")
		require.NoError(t, err)
		_, err = io.ReadFull(clients[i], answer[:len(pong)])
		require.NoError(t, err)
	}
}

// sweepTwice has the effect of two passes of the sweeper.
func (s *wireServer) sweepTwice() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range 2 {
		for c := range s.conns {
			c.wakeIfIdle()
		}
	}
}

// borrowed counts the connections that may hold a large buffer.
func (s *wireServer) borrowed() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		if c.activity.Load() != resting {
			n++
		}
	}
	return n
}

// TestWakingKeepsAnUnfinishedCommand checks that a wake-up in the middle of a command loses no part of it.
func TestWakingKeepsAnUnfinishedCommand(t *testing.T) {
	srv := startWire(t, Config{}, nil)
	for _, size := range []int{10, 400, 5000, 40_000, 60_000} {
		p := srv.dial(t)
		value := strings.Repeat("v", size)
		command := resptest.Multibulk("ECHO", value)
		p.Send("PING\r\n" + command[:len(command)/2])
		p.Expect(pong)
		for range 20 {
			srv.sweepTwice()
		}
		p.Send(command[len(command)/2:])
		p.Expect("$")
		_, err := p.In.ReadString('\n')
		require.NoError(t, err)
		p.Expect(value + "\r\n")
		require.NoError(t, p.Close())
	}
}
