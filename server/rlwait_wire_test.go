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

	"github.com/weir-project/weir/internal/race"
	"github.com/weir-project/weir/server/servertest"
	"github.com/weir-project/weir/server/service"
)

// heldLine waits longer than any test runs, because its unit is free in an hour.
const (
	takenLine   = "RL.FIXED k 1h 1 FIRST\r\n"
	takenAnswer = "*5\r\n:1\r\n:0\r\n:0\r\n:3600000\r\n:1\r\n"
	heldLine    = "RL.WAIT RL.FIXED k 1h 1 FIRST TIMEOUT 1h\r\n"
)

func (s *wireServer) awaitWaiting(t *testing.T, n int32) {
	t.Helper()
	require.Eventually(t, func() bool { return s.Waits.Count.Load() == n }, servertest.Patience, time.Millisecond)
}

// overWires runs a test with clients on pollers, and with a goroutine for each.
func overWires(t *testing.T, test func(t *testing.T, srv *wireServer)) {
	t.Run("one node", func(t *testing.T) { test(t, startWire(t, Config{}, servertest.NewTableLimiter())) })
	t.Run("a node of a cluster", func(t *testing.T) {
		test(t, startWire(t, Config{}, servertest.NewFakeCluster().Node("a")))
	})
}

func TestAHeldClientThatGoesLeavesTheLine(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("elsewhere it is noticed when its turn comes")
	}
	for name, leave := range map[string]func(t *testing.T, srv *wireServer, p *servertest.Peer, id string){
		"it hangs up":          func(_ *testing.T, _ *wireServer, p *servertest.Peer, _ string) { _ = p.Close() },
		"it will send no more": func(_ *testing.T, _ *wireServer, p *servertest.Peer, _ string) { _ = p.CloseWrite() },
		"it resets": func(_ *testing.T, _ *wireServer, p *servertest.Peer, _ string) {
			_ = p.Conn.(*net.TCPConn).SetLinger(0)
			_ = p.Close()
		},
		"it hangs up with more on the way to us": func(_ *testing.T, _ *wireServer, p *servertest.Peer, _ string) {
			p.Send(strings.Repeat("PING\r\n", 20_000))
			_ = p.Close()
		},
		"it is killed": func(t *testing.T, srv *wireServer, _ *servertest.Peer, id string) {
			killer := srv.dial(t)
			killer.Send("CLIENT KILL ID " + id + "\r\n")
			killer.Expect(":1\r\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			overWires(t, func(t *testing.T, srv *wireServer) {
				p := srv.dial(t)
				p.Send("CLIENT ID\r\n")
				id, err := p.In.ReadString('\n')
				require.NoError(t, err)
				p.Send(takenLine)
				p.Expect(takenAnswer)
				p.Send(heldLine)
				srv.awaitWaiting(t, 1)
				leave(t, srv, p, strings.TrimSpace(id[1:]))
				srv.awaitWaiting(t, 0)

				other := srv.dial(t)
				other.Send("DEL k\r\n" + takenLine)
				other.Expect(":1\r\n" + takenAnswer)
			})
		})
	}
}

// TestAHeldClientIsServedAround checks a client that waits in RL.WAIT. Earlier replies are sent, messages arrive, and
// later commands are answered after the wait. A sweep of idle connections changes nothing.
func TestAHeldClientIsServedAround(t *testing.T) {
	overWires(t, func(t *testing.T, srv *wireServer) {
		p, other := srv.dial(t), srv.dial(t)
		p.Send("HELLO 3\r\nSUBSCRIBE weir:denied:tokenbucket\r\n" + takenLine + "PING\r\n" + heldLine + "PING\r\n")
		for line := ""; line != pong; {
			var err error
			line, err = p.In.ReadString('\n')
			require.NoError(t, err)
		}
		srv.awaitWaiting(t, 1)
		for range 3 {
			srv.mu.Lock()
			for c := range srv.conns {
				c.wakeIfIdle()
			}
			srv.mu.Unlock()
		}
		other.Send("RL.TOKENBUCKET b 1/s 1 COST 2\r\n")
		p.Expect(">3\r\n$7\r\nmessage\r\n$23\r\nweir:denied:tokenbucket\r\n$1\r\nb\r\n")
		other.Send("DEL k\r\n")
		p.Expect(takenAnswer + pong)
		p.Send("PING\r\n")
		p.Expect(pong)
	})
}

func TestShutdownAnswersHeldClients(t *testing.T) {
	overWires(t, func(t *testing.T, srv *wireServer) {
		p := srv.dial(t)
		p.Send(takenLine + heldLine)
		srv.awaitWaiting(t, 1)
		require.NoError(t, srv.Shutdown(t.Context()))
		p.Expect(takenAnswer)
		assert.Equal(t, "-TRYAGAIN not applied, send it again: the server is stopping\r\n", p.ExpectEnd())
	})
}

// TestWhatHeldClientsTake prints the memory of ten thousand waiting clients.
func TestWhatHeldClientsTake(t *testing.T) {
	race.Skip(t, "takes memory of its own")
	const clients = service.MaxWaiters
	ln := &remoteListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	srv := serveWire(t, Config{MaxClients: 2 * clients}, servertest.NewTableLimiter(), ln) // one source
	peers, empty := make([]*servertest.Peer, clients), heldMemory()
	for i := range peers {
		ours, theirs := net.Pipe()
		t.Cleanup(func() { _ = ours.Close() })
		ln.conns <- theirs
		peers[i] = &servertest.Peer{Conn: ours, T: t, In: bufio.NewReaderSize(ours, 16)}
		peers[i].Send("PING\r\n")
		peers[i].Expect(pong)
	}
	connected := heldMemory()
	for i, p := range peers {
		p.Send(strings.Replace(heldLine, " k ", " k"+string(rune('a'+i%20))+" ", 1))
		if i < 20 {
			p.Expect(takenAnswer) // and the next one waits
			p.Send(strings.Replace(heldLine, " k ", " k"+string(rune('a'+i%20))+" ", 1))
		}
	}
	srv.awaitWaiting(t, clients)
	held := heldMemory()
	each := (held - empty) / clients
	t.Logf("%d requests are held with %d bytes each: %d of their connection, its goroutine and its peer, %d of waiting",
		clients, each, (connected-empty)/clients, (held-connected)/clients)
	assert.Less(t, each, int64(32<<10))
}

// heldMemory returns the bytes of objects and stacks.
func heldMemory() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
