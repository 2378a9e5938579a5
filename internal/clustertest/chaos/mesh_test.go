package chaos

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience bounds the wait for expected events. glance is the wait for events that must not happen.
const (
	patience = 5 * time.Second
	glance   = 50 * time.Millisecond
)

// pair is a connection that node 0 of a mesh has opened to node 1.
type pair struct {
	mesh      *Mesh
	at0, at1  net.Conn
	delivered chan string // what node 1 received
	returned  chan string // what node 0 received
}

func newPair(t *testing.T) *pair {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { ln.Close() })
	m, err := newMesh([]string{"127.0.0.1:1", ln.Addr().String()})
	require.NoError(t, err)
	t.Cleanup(m.Close)
	at0, err := net.Dial("tcp", m.proxies[0][1].Addr())
	require.NoError(t, err)
	at1, err := ln.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { at0.Close(); at1.Close() })
	p := &pair{mesh: m, at0: at0, at1: at1, delivered: receive(at1), returned: receive(at0)}
	return p
}

// receive passes on the data that arrives, and closes the channel with the connection.
func receive(c net.Conn) chan string {
	out := make(chan string, 16)
	go func() {
		defer close(out)
		buf := make([]byte, 64)
		for {
			n, err := c.Read(buf)
			if err != nil {
				return
			}
			out <- string(buf[:n])
		}
	}()
	return out
}

func send(t *testing.T, c net.Conn, text string) {
	t.Helper()
	_, err := io.WriteString(c, text)
	require.NoError(t, err)
}

func arrives(t *testing.T, from chan string, want string) {
	t.Helper()
	select {
	case got, ok := <-from:
		require.True(t, ok, "the connection ended")
		require.Equal(t, want, got)
	case <-time.After(patience):
		t.Fatalf("%q did not arrive", want)
	}
}

func staysAway(t *testing.T, from chan string) {
	t.Helper()
	select {
	case got, ok := <-from:
		t.Fatalf("%q arrived, open %v", got, ok)
	case <-time.After(glance):
	}
}

func ends(t *testing.T, from chan string) {
	t.Helper()
	select {
	case got, ok := <-from:
		require.False(t, ok, "%q arrived", got)
	case <-time.After(patience):
		t.Fatal("the connection did not end")
	}
}

func TestMeshCarriesBothWays(t *testing.T) {
	p := newPair(t)
	send(t, p.at0, "ask")
	arrives(t, p.delivered, "ask")
	send(t, p.at1, "answer")
	arrives(t, p.returned, "answer")
	p.at1.Close()
	ends(t, p.returned)
}

// TestOneWay checks that a one-way partition blocks one direction of a connection only, whichever node opened it.
func TestOneWay(t *testing.T) {
	for name, c := range map[string]struct {
		inbound bool
		forth   bool // node 0 can still send to node 1
	}{
		"node 1 is deaf": {inbound: true, forth: false},
		"node 1 is dumb": {inbound: false, forth: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t)
			p.mesh.CutOneWay(1, c.inbound, []int{0, 1})
			send(t, p.at0, "ask")
			send(t, p.at1, "answer")
			open, held, openText, heldText := p.delivered, p.returned, "ask", "answer"
			if !c.forth {
				open, held, openText, heldText = held, open, heldText, openText
			}
			arrives(t, open, openText)
			staysAway(t, held)
			p.mesh.Heal(false)
			arrives(t, held, heldText)
		})
	}
}

func TestSplit(t *testing.T) {
	m, err := newMesh([]string{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"})
	require.NoError(t, err)
	t.Cleanup(m.Close)
	cut := func() (pairs string) {
		_ = m.each(func(i, j int) error {
			if m.wires[i][j].opened != nil {
				pairs += string(rune('0'+i)) + string(rune('0'+j)) + " "
			}
			return nil
		})
		return strings.TrimSpace(pairs)
	}
	m.Split([]int{0, 2}, []int{1})
	require.Equal(t, "01 10 12 21", cut())
	m.Heal(false)
	require.Empty(t, cut())
	m.Split([]int{0, 2})
	require.Equal(t, "01 10 12 21", cut(), "a node in no group must be cut off from all others")
	m.Split()
	require.Equal(t, "01 02 10 12 20 21", cut())
	m.Heal(true)
	require.Empty(t, cut())
}

func TestResetEndsConnections(t *testing.T) {
	p := newPair(t)
	send(t, p.at0, "ask")
	arrives(t, p.delivered, "ask")
	p.mesh.Reset(0)
	ends(t, p.delivered)
	ends(t, p.returned)
}

// TestBrokenHealLosesWhatWasHeld checks that data sent over a cut link does not arrive. The data is lost with its
// connection when the link heals as broken.
func TestBrokenHealLosesWhatWasHeld(t *testing.T) {
	p := newPair(t)
	p.mesh.Split()
	send(t, p.at0, "ask")
	staysAway(t, p.delivered)
	p.mesh.Heal(true)
	ends(t, p.delivered)
}

func TestSlowKeepsOrder(t *testing.T) {
	p := newPair(t)
	p.mesh.Slow(0, glance, glance)
	begin := time.Now()
	var want, got strings.Builder
	for i := range 20 {
		text := string(rune('a' + i))
		want.WriteString(text)
		send(t, p.at0, text)
	}
	for got.Len() < want.Len() {
		select {
		case text := <-p.delivered:
			got.WriteString(text)
		case <-time.After(patience):
			t.Fatalf("only %q arrived", got.String())
		}
	}
	require.Equal(t, want.String(), got.String())
	require.GreaterOrEqual(t, time.Since(begin), glance)
}

// TestCloseWithFullWire checks that Close ends the proxy's goroutines although a cut link still holds data.
func TestCloseWithFullWire(t *testing.T) {
	p := newPair(t)
	p.mesh.Split()
	go func() {
		for {
			if _, err := p.at0.Write(make([]byte, chunkBytes)); err != nil {
				return
			}
		}
	}()
	staysAway(t, p.delivered)
	closed := make(chan struct{})
	go func() { p.mesh.Close(); close(closed) }()
	select {
	case <-closed:
	case <-time.After(patience):
		t.Fatal("Close hangs")
	}
}
