package peer

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weir-project/weir/internal/logtest"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/certs"
	"github.com/weir-project/weir/certs/certtest"
)

// openHub starts a hub without groups.
func openHub(t *testing.T, secret string) (*Hub, *logtest.Buffer) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	said := &logtest.Buffer{}
	h := NewHub(l, HubConfig{Secret: []byte(secret), Logger: slog.New(slog.NewTextHandler(said, nil))})
	t.Cleanup(func() { h.Close() })
	return h, said
}

// groupOf opens a port that answers every call with the number of its group, its caller and the payload.
func groupOf(t *testing.T, h *Hub, group uint16, id string) *Port {
	p, err := h.Open(group, PortConfig{
		Self:   func() Identity { return Identity{NodeID: id, ClusterID: fmt.Sprint("cluster", group)} },
		Logger: h.config.Logger,
	}, func(conn net.Conn, from Identity) {
		ServeCalls(conn, from, func(from Identity, method byte, payload []byte) (byte, []byte) {
			return method, fmt.Appendf(nil, "%d:%s:%s:%s", group, from.NodeID, from.ClusterID, payload)
		})
	})
	require.NoError(t, err)
	return p
}

// TestBytesOfAGreeting checks the bytes of a greeting, which are a contract between versions.
func TestBytesOfAGreeting(t *testing.T) {
	nonce := [nonceLen]byte([]byte("0123456789abcdef"))
	for _, c := range []struct {
		service Service
		group   uint16
		want    string
	}{
		{CallService, 0, "weir-node\x01C0123456789abcdef\x01a\x03one"},
		{RaftService, 0, "weir-node\x01R0123456789abcdef\x01a\x03one"},
		{CallService, 1, "weir-node\x01c0123456789abcdef\x01a\x03one\x01\x00"},
		{RaftService, 258, "weir-node\x01r0123456789abcdef\x01a\x03one\x02\x01"},
		{RaftService, 65535, "weir-node\x01r0123456789abcdef\x01a\x03one\xff\xff"},
	} {
		sent := greeting{version: 1, service: c.service, group: c.group, nonce: nonce, self: Identity{"a", "one"}}
		require.Equal(t, c.want, string(sent.encode()))
		got, raw, err := readGreeting(strings.NewReader(c.want + "more"))
		require.NoError(t, err)
		require.Equal(t, sent, got)
		require.Equal(t, c.want, string(raw))
		for n := range c.want {
			_, _, err := readGreeting(strings.NewReader(c.want[:n]))
			require.ErrorIs(t, err, ErrNotWeir, "%d bytes", n)
		}
	}
	for _, second := range []string{
		"weir-node\x01c0123456789abcdef\x01a\x03one\x00\x00", "weir-node\x01r0123456789abcdef\x01a\x03one\x00\x00",
	} {
		_, _, err := readGreeting(strings.NewReader(second))
		require.ErrorIs(t, err, ErrNotWeir, "group 0 has one form")
	}
}

// TestTheProofCoversTheGroup: a greeting whose group was changed on its way is refused.
func TestTheProofCoversTheGroup(t *testing.T) {
	for name, change := range map[string]func(said []byte){
		"another group":   func(said []byte) { said[len(said)-2]++ },
		"another service": func(said []byte) { said[len(magic)+1] = byte(RaftService) + lowerCase },
	} {
		dialer, acceptor := net.Pipe()
		received := make(chan error, 1)
		go func() {
			_, err := receive(acceptor, []byte("secret"), welcomes(Identity{NodeID: "b"}))
			received <- err
		}()
		mine := newGreeting(CallService, 1, Identity{NodeID: "a"})
		onTheWay := mine.encode()
		change(onTheWay)
		_, err := dialer.Write(onTheWay)
		require.NoError(t, err)
		challenge, err := readChallenge(dialer)
		require.NoError(t, err)
		_, err = dialer.Write(proof([]byte("secret"), "dialer", mine.encode(), challenge))
		require.NoError(t, err)
		require.ErrorIs(t, <-received, ErrSecret, name)
		require.NoError(t, dialer.Close())
	}
}

// TestGroupsShareAListener: connections reach the port of their group, for calls and for Raft, under the identity that
// the node has in that group.
func TestGroupsShareAListener(t *testing.T) {
	near, _ := openHub(t, "secret")
	far, _ := openHub(t, "secret")
	var callers sync.WaitGroup
	for _, group := range []uint16{0, 1, 258} {
		here := groupOf(t, near, group, fmt.Sprint("a~", group))
		there := groupOf(t, far, group, fmt.Sprint("b~", group))
		require.Equal(t, far.Addr(), there.Addr())
		for range 8 {
			callers.Go(func() {
				client := NewClient(here, far.Addr().String(), fmt.Sprint("b~", group))
				defer client.Close()
				for range 20 {
					_, answer, err := client.Call(context.Background(), 1, []byte("x"))
					require.NoError(t, err)
					require.Equal(t, fmt.Sprintf("%d:a~%d:cluster%d:x", group, group, group), string(answer))
				}
			})
		}
		callers.Go(func() {
			stream, err := here.Raft("a:1", func(string) string { return "" }).
				Dial(raft.ServerAddress(far.Addr().String()), patience)
			require.NoError(t, err)
			defer stream.Close()
			_, err = fmt.Fprintf(stream, "%5d", group)
			require.NoError(t, err)
			accepted, err := there.Raft("b:1", nil).Accept()
			require.NoError(t, err)
			defer accepted.Close()
			got := make([]byte, 5)
			_, err = io.ReadFull(accepted, got)
			require.NoError(t, err)
			require.Equal(t, fmt.Sprintf("%5d", group), string(got))
		})
	}
	callers.Wait()
}

// TestAGroupThatAHostDoesNotHave checks that a dialer learns that the host lacks the group, and is served as soon as
// the host has it. A dialer without the secret does not learn this.
func TestAGroupThatAHostDoesNotHave(t *testing.T) {
	near, _ := openHub(t, "secret")
	far, said := openHub(t, "secret")
	groupOf(t, far, 0, "b")
	here := groupOf(t, near, 3, "a")
	client := NewClient(here, far.Addr().String(), "b")
	defer client.Close()
	for range 2 * MaxHandshakes {
		_, _, err := client.Call(context.Background(), 1, nil)
		require.ErrorIs(t, err, ErrNotSent)
		require.ErrorIs(t, err, ErrRefused)
		require.ErrorContains(t, err, "this node has no group 3")
	}
	require.Zero(t, here.held())
	require.False(t, said.Has("refused"), "it is normal while a group starts")
	require.Eventually(t, func() bool { return far.held() == 0 && far.handshakes.Len() == 0 }, patience,
		time.Millisecond)

	stranger, _ := openHub(t, "guess")
	_, _, err := groupOf(t, stranger, 3, "a").Dial(context.Background(), far.Addr().String(), CallService)
	require.ErrorIs(t, err, ErrUnproven)
	require.NotContains(t, err.Error(), "no group")

	groupOf(t, far, 3, "b")
	_, answer, err := client.Call(context.Background(), 1, nil)
	require.NoError(t, err)
	require.Equal(t, "3:a:cluster3:", string(answer))
}

// held counts the connections whose group a hub does not know yet.
func (h *Hub) held() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.conns)
}

// TestAGroupThatCloses: the end of one group leaves the connections of the others, and the group may start again.
func TestAGroupThatCloses(t *testing.T) {
	near, _ := openHub(t, "secret")
	far, _ := openHub(t, "secret")
	here, there := [2]*Port{}, [2]*Port{}
	clients := [2]*Client{}
	streams := [2]net.Conn{}
	for group := range here {
		here[group], there[group] = groupOf(t, near, uint16(group), "a"), groupOf(t, far, uint16(group), "b")
		clients[group] = NewClient(here[group], far.Addr().String(), "b")
		defer clients[group].Close()
		_, _, err := clients[group].Call(context.Background(), 1, nil)
		require.NoError(t, err)
		streams[group], _, err = here[group].Dial(context.Background(), far.Addr().String(), RaftService)
		require.NoError(t, err)
	}
	accepted, err := there[1].Raft("b:1", nil).Accept()
	require.NoError(t, err)
	kept := clients[1].current()
	require.NoError(t, there[0].Cut())
	require.NoError(t, there[0].Close())
	require.NoError(t, there[0].Close())

	_, err = there[0].Raft("b:1", nil).Accept()
	require.ErrorIs(t, err, net.ErrClosed)
	streams[0].SetReadDeadline(time.Now().Add(patience))
	_, err = streams[0].Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	require.Eventually(t, func() bool {
		_, _, err = clients[0].Call(context.Background(), 1, nil)
		return err != nil && strings.Contains(err.Error(), "this node has no group 0")
	}, patience, time.Millisecond)
	_, err = streams[1].Write([]byte("x"))
	require.NoError(t, err)
	_, err = io.ReadFull(accepted, make([]byte, 1))
	require.NoError(t, err)
	_, _, err = clients[1].Call(context.Background(), 1, nil)
	require.NoError(t, err)
	require.Same(t, kept, clients[1].current(), "over the connection of before")

	_, err = far.Open(1, PortConfig{}, nil)
	require.ErrorIs(t, err, ErrGroupOpen)
	groupOf(t, far, 0, "b")
	_, _, err = clients[0].Call(context.Background(), 1, nil)
	require.NoError(t, err)
	require.NoError(t, there[0].Close(), "the earlier port does not close its successor")
	_, _, err = clients[0].Call(context.Background(), 1, nil)
	require.NoError(t, err)
}

// TestAPortThatClosesWaitsForItsCalls: Close of a port waits for the calls of its group, and for no other.
func TestAPortThatClosesWaitsForItsCalls(t *testing.T) {
	near, _ := openHub(t, "secret")
	far, _ := openHub(t, "secret")
	asked, release := make(chan struct{}), make(chan struct{})
	slow, err := far.Open(1, PortConfig{Self: func() Identity { return Identity{NodeID: "b"} }},
		func(conn net.Conn, from Identity) {
			ServeCalls(conn, from, func(Identity, byte, []byte) (byte, []byte) {
				close(asked)
				<-release
				return 0, nil
			})
		})
	require.NoError(t, err)
	quick := groupOf(t, far, 0, "b")
	client := NewClient(groupOf(t, near, 1, "a"), far.Addr().String(), "b")
	defer client.Close()
	failed := make(chan error, 1)
	go func() {
		_, _, err := client.Call(context.Background(), 1, nil)
		failed <- err
	}()
	<-asked
	require.NoError(t, quick.Close())
	require.NoError(t, slow.Cut())
	require.ErrorIs(t, <-failed, ErrNoAnswer)
	closed := make(chan error, 2)
	go func() { closed <- slow.Close() }()
	go func() { closed <- far.Close() }()
	select {
	case <-closed:
		t.Fatal("closed while a call is being answered")
	case <-time.After(20 * time.Millisecond):
	}
	close(release)
	require.NoError(t, <-closed)
	require.NoError(t, <-closed)
}

// TestAHubThatCloses: the end of a hub is the end of every port, of every connection, and of handshakes under way.
func TestAHubThatCloses(t *testing.T) {
	near, _ := openHub(t, "secret")
	far, _ := openHub(t, "secret")
	var conns []net.Conn
	var ports []*Port
	for group := range uint16(3) {
		here := groupOf(t, near, group, "a")
		ports = append(ports, groupOf(t, far, group, "b"))
		for _, service := range []Service{CallService, RaftService} {
			conn, _, err := here.Dial(context.Background(), far.Addr().String(), service)
			require.NoError(t, err)
			conns = append(conns, conn)
		}
	}
	silent, err := net.Dial("tcp", far.Addr().String())
	require.NoError(t, err)
	defer silent.Close()
	require.Eventually(t, func() bool { return far.held() == 1 }, patience, time.Millisecond)
	require.NoError(t, far.Close())
	require.NoError(t, far.Close())
	for _, conn := range append(conns, silent) {
		conn.SetReadDeadline(time.Now().Add(patience))
		_, err := conn.Read(make([]byte, 1))
		require.Error(t, err)
		require.False(t, isTimeout(err))
	}
	for _, p := range ports {
		require.Zero(t, p.held())
		_, _, err := p.Dial(context.Background(), near.Addr().String(), CallService)
		require.ErrorIs(t, err, net.ErrClosed)
		require.NoError(t, p.Close())
	}
	_, err = far.Open(7, PortConfig{}, nil)
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = net.Dial("tcp", far.Addr().String())
	require.Error(t, err)
}

// TestGroupsThatComeAndGo: ports close and open while nodes dial them. No connection stays behind.
func TestGroupsThatComeAndGo(t *testing.T) {
	near, _ := openHub(t, "secret")
	far, _ := openHub(t, "secret")
	steady := NewClient(groupOf(t, near, 9, "a"), far.Addr().String(), "b")
	groupOf(t, far, 9, "b")
	var tasks sync.WaitGroup
	done := make(chan struct{})
	for group := range uint16(2) {
		here := groupOf(t, near, group, "a")
		for range 4 {
			tasks.Go(func() {
				for {
					select {
					case <-done:
						return
					default:
						conn, _, err := here.Dial(context.Background(), far.Addr().String(), CallService)
						if err == nil {
							conn.Close()
						}
					}
				}
			})
		}
		tasks.Go(func() {
			for range 30 {
				there := groupOf(t, far, group, "b")
				time.Sleep(time.Millisecond)
				require.NoError(t, there.Close())
				require.Zero(t, there.held())
			}
		})
	}
	for range 100 {
		_, _, err := steady.Call(context.Background(), 1, nil)
		require.NoError(t, err)
	}
	time.Sleep(60 * time.Millisecond)
	close(done)
	tasks.Wait()
	steady.Close()
	require.NoError(t, far.Close())
	require.Zero(t, far.held())
}

// TestHandshakesAreBoundedPerHost: silent connections occupy the handshakes of the host, whatever group they name.
func TestHandshakesAreBoundedPerHost(t *testing.T) {
	near, _ := openHub(t, "secret")
	far, _ := openHub(t, "secret")
	for group := range uint16(2) {
		groupOf(t, far, group, "b")
	}
	for i := range 2 * MaxHandshakes {
		conn := dialAs(t, "127.0.0.2", far.Addr().String())
		g := newGreeting(CallService, uint16(i), Identity{NodeID: "x"})
		_, _ = conn.Write(g.encode()) // the hub may have cut conn already
	}
	require.Eventually(t, func() bool { return far.Evicted() >= MaxHandshakes }, patience, time.Millisecond)
	require.LessOrEqual(t, far.handshakes.Len(), MaxHandshakes)
	conn, _, err := groupOf(t, near, 1, "a").Dial(context.Background(), far.Addr().String(), CallService)
	require.NoError(t, err, "nodes get in")
	require.NoError(t, conn.Close())
}

// certifiedHub starts a hub whose certificate names a node.
func certifiedHub(t *testing.T, ca *certtest.CA, id string) *Hub {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	store, err := certs.Open(ca.Issue(id, nil), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	h := NewHub(l, HubConfig{Certificates: store, Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() { h.Close() })
	return h
}

// TestCertificatesOpenEveryGroup: all groups of a host have its certificates. A node with the certificate of another
// node is not told which groups exist.
func TestCertificatesOpenEveryGroup(t *testing.T) {
	ca := certtest.NewCA(t, "nodes")
	near, far := certifiedHub(t, ca, "a"), certifiedHub(t, ca, "b")
	for group := range uint16(2) {
		groupOf(t, far, group, "b~1")
		client := NewClient(groupOf(t, near, group, "a~1"), far.Addr().String(), "b~1")
		defer client.Close()
		_, answer, err := client.Call(context.Background(), 1, []byte("x"))
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("%d:a~1:cluster%d:x", group, group), string(answer))
	}
	for group := range uint16(2) {
		_, _, err := groupOf(t, near, 4+group, "c").Dial(context.Background(), far.Addr().String(), CallService)
		require.ErrorIs(t, err, ErrRefused)
		require.ErrorContains(t, err, ErrOtherName.Error())
		require.NotContains(t, err.Error(), "no group")
	}
}

// TestRefusalsOfAGroup: a refusal is logged by the group, and a hub logs no ended handshake while a group stops.
func TestRefusalsOfAGroup(t *testing.T) {
	near, _ := openHub(t, "secret")
	far, said := openHub(t, "secret")
	stops := false
	_, err := far.Open(1, PortConfig{
		Self:   func() Identity { return Identity{NodeID: "a"} },
		Logger: far.config.Logger.With("group", 1), Stops: func() bool { return stops },
	}, nil)
	require.NoError(t, err)
	far.refused(nil, address("somewhere"), ErrEnded)
	require.True(t, said.Has("level=WARN") && said.Has(ErrEnded.Error()))
	far.toldRefusal = time.Time{}
	said.Reset()
	_, _, err = groupOf(t, near, 1, "a").Dial(context.Background(), far.Addr().String(), CallService)
	require.ErrorIs(t, err, ErrRefused)
	require.Eventually(t, func() bool { return said.Has("group=1") && said.Has(ErrSameNode.Error()) }, patience,
		time.Millisecond)
	for _, logged := range []bool{false, true} {
		stops = !logged
		far.toldBroken = time.Time{}
		said.Reset()
		far.refused(nil, address("somewhere"), io.EOF)
		require.Equal(t, logged, said.Has("refused"))
	}
}

// TestNodesThatBreakOff checks that a connection which breaks off in its handshake is information, because the node at
// its other end may have stopped. Such a line must not use up the rate limit of warnings.
func TestNodesThatBreakOff(t *testing.T) {
	for _, end := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE} {
		h, said := openHub(t, "secret")
		h.refused(nil, address("somewhere"), &net.OpError{Op: "write", Err: os.NewSyscallError("write", end)})
		require.True(t, said.Has("level=INFO") && said.Has("refused"), end)
		require.False(t, said.Has("level=WARN"), end)
		h.refused(nil, address("somewhere"), ErrSecret)
		require.True(t, said.Has("level=WARN") && said.Has(ErrSecret.Error()), end)
	}
}

// TestAClosingHubExplainsItsOwnCuts checks that a hub which closes logs no refusal of the handshakes that it cuts: the
// stop of a node is no event for an operator.
func TestAClosingHubExplainsItsOwnCuts(t *testing.T) {
	h, said := openHub(t, "secret")
	var conns []net.Conn
	for range 8 {
		conn, err := net.Dial("tcp", h.Addr().String())
		require.NoError(t, err)
		_, err = conn.Write([]byte(magic)) // half a greeting
		require.NoError(t, err)
		conns = append(conns, conn)
	}
	require.Eventually(t, func() bool { return h.held() == len(conns) }, patience, time.Millisecond)
	require.NoError(t, h.Close())
	require.False(t, said.Has("refused"), "of %d cut handshakes", len(conns))
	for _, conn := range conns {
		conn.Close()
	}
}
