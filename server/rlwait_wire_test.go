package server

import (
	"bufio"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/server/service"
)

// heldLine waits for longer than any test; what it waits for comes in an hour.
const (
	takenLine   = "RL.FIXED k 1h 1 FIRST\r\n"
	takenAnswer = "*5\r\n:1\r\n:0\r\n:0\r\n:3600000\r\n:1\r\n"
	heldLine    = "RL.WAIT RL.FIXED k 1h 1 FIRST TIMEOUT 1h\r\n"
)

func (s *wireServer) awaitWaiting(t *testing.T, n int32) {
	t.Helper()
	require.Eventually(t, func() bool { return s.Waits.Count.Load() == n }, testWait, time.Millisecond)
}

// overWires runs a test with clients on pollers, and with a goroutine for each.
func overWires(t *testing.T, test func(t *testing.T, srv *wireServer)) {
	t.Run("one node", func(t *testing.T) { test(t, startWire(t, Config{}, newTableLimiter())) })
	t.Run("a node of a cluster", func(t *testing.T) {
		test(t, startWire(t, Config{}, newFakeCluster().node("a")))
	})
}

func TestAHeldClientThatGoesLeavesTheLine(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("elsewhere it is noticed when its turn comes")
	}
	for name, leave := range map[string]func(t *testing.T, srv *wireServer, p *peer, id string){
		"it hangs up":          func(_ *testing.T, _ *wireServer, p *peer, _ string) { _ = p.Close() },
		"it will send no more": func(_ *testing.T, _ *wireServer, p *peer, _ string) { _ = p.CloseWrite() },
		"it resets": func(_ *testing.T, _ *wireServer, p *peer, _ string) {
			_ = p.Conn.(*net.TCPConn).SetLinger(0)
			_ = p.Close()
		},
		"it hangs up with more on the way to us": func(_ *testing.T, _ *wireServer, p *peer, _ string) {
			p.send(strings.Repeat("PING\r\n", 20_000))
			_ = p.Close()
		},
		"it is killed": func(t *testing.T, srv *wireServer, _ *peer, id string) {
			killer := srv.dial(t)
			killer.send("CLIENT KILL ID " + id + "\r\n")
			killer.expect(":1\r\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			overWires(t, func(t *testing.T, srv *wireServer) {
				p := srv.dial(t)
				p.send("CLIENT ID\r\n")
				id, err := p.in.ReadString('\n')
				require.NoError(t, err)
				p.send(takenLine)
				p.expect(takenAnswer)
				p.send(heldLine)
				srv.awaitWaiting(t, 1)
				leave(t, srv, p, strings.TrimSpace(id[1:]))
				srv.awaitWaiting(t, 0)

				other := srv.dial(t)
				other.send("DEL k\r\n" + takenLine)
				other.expect(":1\r\n" + takenAnswer)
			})
		})
	}
}

// What was answered before goes out, messages come meanwhile, and what is sent behind
// is answered after; a sweep of idle connections disturbs nobody.
func TestAHeldClientIsServedAround(t *testing.T) {
	overWires(t, func(t *testing.T, srv *wireServer) {
		p, other := srv.dial(t), srv.dial(t)
		p.send("HELLO 3\r\nSUBSCRIBE weir:denied:tokenbucket\r\n" + takenLine + "PING\r\n" + heldLine + "PING\r\n")
		for line := ""; line != pong; {
			var err error
			line, err = p.in.ReadString('\n')
			require.NoError(t, err)
		}
		srv.awaitWaiting(t, 1)
		for range 3 {
			srv.mu.Lock()
			for c := range srv.conns {
				c.nudgeIfIdle()
			}
			srv.mu.Unlock()
		}
		other.send("RL.TOKENBUCKET b 1/s 1 COST 2\r\n")
		p.expect(">3\r\n$7\r\nmessage\r\n$23\r\nweir:denied:tokenbucket\r\n$1\r\nb\r\n")
		other.send("DEL k\r\n")
		p.expect(takenAnswer + pong)
		p.send("PING\r\n")
		p.expect(pong)
	})
}

func TestShutdownAnswersHeldClients(t *testing.T) {
	overWires(t, func(t *testing.T, srv *wireServer) {
		p := srv.dial(t)
		p.send(takenLine + heldLine)
		srv.awaitWaiting(t, 1)
		require.NoError(t, srv.Shutdown(t.Context()))
		p.expect(takenAnswer)
		assert.Equal(t, "-TRYAGAIN not applied, send it again: the server is stopping\r\n", p.expectEnd())
	})
}

// TestWhatHeldClientsTake shows the memory of ten thousand of them.
func TestWhatHeldClientsTake(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector takes memory of its own")
	}
	const clients = service.MaxWaiters
	ln := &strangerListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	srv := serveWire(t, Config{MaxClients: 2 * clients}, newTableLimiter(), ln) // all of one source
	peers, empty := make([]*peer, clients), heldMemory()
	for i := range peers {
		ours, theirs := net.Pipe()
		t.Cleanup(func() { _ = ours.Close() })
		ln.conns <- theirs
		peers[i] = &peer{Conn: ours, t: t, in: bufio.NewReaderSize(ours, 16)}
		peers[i].send("PING\r\n")
		peers[i].expect(pong)
	}
	connected := heldMemory()
	for i, p := range peers {
		p.send(strings.Replace(heldLine, " k ", " k"+string(rune('a'+i%20))+" ", 1))
		if i < 20 {
			p.expect(takenAnswer) // and the next one waits
			p.send(strings.Replace(heldLine, " k ", " k"+string(rune('a'+i%20))+" ", 1))
		}
	}
	srv.awaitWaiting(t, clients)
	held := heldMemory()
	each := (held - empty) / clients
	t.Logf("%d requests are held with %d bytes each: %d of their connection, its goroutine and its peer, %d of waiting",
		clients, each, (connected-empty)/clients, (held-connected)/clients)
	assert.Less(t, each, int64(32<<10))
}

// heldMemory is the memory of objects and stacks.
func heldMemory() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
