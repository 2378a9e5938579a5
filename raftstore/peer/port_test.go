package peer

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-project/weir/internal/logtest"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 10 * time.Second

// open starts a port that answers every call with its own payload.
func open(t *testing.T, id, cluster, secret string) (*Port, *logtest.Buffer) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	said := &logtest.Buffer{}
	p := openPort(t, l, HubConfig{Secret: []byte(secret)}, PortConfig{
		Self:   func() Identity { return Identity{NodeID: id, ClusterID: cluster} },
		Logger: slog.New(slog.NewTextHandler(said, nil)),
	}, func(conn net.Conn, from Identity) {
		ServeCalls(conn, from, func(from Identity, method byte, payload []byte) (byte, []byte) {
			return method, append([]byte(from.NodeID+":"), payload...)
		})
	})
	t.Cleanup(func() { p.Close() })
	return p, said
}

func TestCallsAreAnswered(t *testing.T) {
	a, _ := open(t, "a", "one", "secret")
	b, _ := open(t, "b", "one", "secret")
	client := NewClient(a, b.Addr().String(), "b")
	defer client.Close()
	var calls sync.WaitGroup
	for i := range 50 {
		calls.Go(func() {
			payload := bytes.Repeat([]byte{byte(i)}, i*1000)
			status, answer, err := client.Call(context.Background(), byte(i), payload)
			require.NoError(t, err)
			require.EqualValues(t, i, status)
			require.Equal(t, append([]byte("a:"), payload...), answer)
		})
	}
	calls.Wait()
}

func TestUnauthenticatedPeersAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		id, cluster, secret string
		want                error
		logged              string
	}{
		"wrong secret":    {"a", "one", "guess", ErrUnproven, "does not know this cluster's secret"},
		"no secret":       {"a", "one", "", ErrUnproven, "does not know this cluster's secret"},
		"another cluster": {"a", "two", "secret", ErrRefused, "belongs to another cluster"},
		"the same id":     {"b", "one", "secret", ErrRefused, "the id of this node"},
	} {
		t.Run(name, func(t *testing.T) {
			b, said := open(t, "b", "one", "secret")
			a, _ := open(t, c.id, c.cluster, c.secret)
			_, _, err := a.Dial(context.Background(), b.Addr().String(), CallService)
			require.ErrorIs(t, err, c.want)
			require.Eventually(t, func() bool { return said.Has(c.logged) }, patience, time.Millisecond)
		})
	}
}

// TestStoppedPeerIsNotReportedAsUnauthenticated checks that a node which stops during a handshake is not reported as
// having another secret.
func TestStoppedPeerIsNotReportedAsUnauthenticated(t *testing.T) {
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listen.Close()
	go func() {
		conn, err := listen.Accept()
		if err == nil {
			_, _, _ = readGreeting(conn)
			_, _ = conn.Write(append(append([]byte(magic), protocolVersion), make([]byte, nonceLen)...))
			_, _ = io.ReadFull(conn, make([]byte, macLen))
			conn.Close()
		}
	}()
	a, said := open(t, "a", "one", "secret")
	_, _, err = a.Dial(context.Background(), listen.Addr().String(), CallService)
	require.ErrorIs(t, err, ErrUnproven)
	require.NotErrorIs(t, err, ErrSecret)
	require.NotErrorIs(t, err, ErrNotWeir)

	conn, err := net.Dial("tcp", a.Addr().String())
	require.NoError(t, err)
	mine := newGreeting(CallService, 0, Identity{NodeID: "b"})
	_, err = conn.Write(mine.encode())
	require.NoError(t, err)
	_, err = readChallenge(conn)
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	require.Eventually(t, func() bool { return said.Has(ErrEnded.Error()) }, patience, time.Millisecond)
	require.False(t, said.Has(ErrSecret.Error()))
}

func TestNewcomersMayBeOfNoCluster(t *testing.T) {
	a, _ := open(t, "a", "", "secret")
	b, _ := open(t, "b", "one", "secret")
	conn, who, err := a.Dial(context.Background(), b.Addr().String(), CallService)
	require.NoError(t, err)
	require.Equal(t, Identity{NodeID: "b", ClusterID: "one"}, who)
	require.NoError(t, conn.Close())
}

func TestRaftStreamsKnowWhoAnswers(t *testing.T) {
	a, _ := open(t, "a", "one", "secret")
	b, _ := open(t, "b", "one", "secret")
	to := raft.ServerAddress(b.Addr().String())
	streams := b.Raft("b:1", nil)
	conn, err := a.Raft("a:1", func(string) string { return "b" }).Dial(to, patience)
	require.NoError(t, err)
	defer conn.Close()
	accepted, err := streams.Accept()
	require.NoError(t, err)
	_, err = conn.Write([]byte("raft"))
	require.NoError(t, err)
	got := make([]byte, 4)
	_, err = io.ReadFull(accepted, got)
	require.NoError(t, err)
	require.Equal(t, "raft", string(got))
	require.Equal(t, "b:1", streams.Addr().String())

	_, err = a.Raft("a:1", func(string) string { return "c" }).Dial(to, patience)
	require.ErrorIs(t, err, ErrWrongID)
}

// TestForeignBytes checks that connections with foreign bytes are closed, and that nodes are still served.
func TestForeignBytes(t *testing.T) {
	b, _ := open(t, "b", "one", "secret")
	noise := make([]byte, 4096)
	_, err := rand.Read(noise)
	require.NoError(t, err)
	older := (&greeting{version: oldestProtocol - 1, service: CallService}).encode()
	long := append((&greeting{version: protocolVersion, service: CallService}).encode()[:len(magic)+2+nonceLen], 255)
	for name, sent := range map[string][]byte{
		"noise": noise, "http": []byte("GET / HTTP/1.1\r\n\r\n" + strings.Repeat("x", 64)),
		"redis": []byte("*1\r\n$4\r\nPING\r\n" + strings.Repeat("x", 64)),
		"older": older, "long name": append(long, noise[:255]...),
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", b.Addr().String())
			require.NoError(t, err)
			defer conn.Close()
			_, err = conn.Write(sent)
			require.NoError(t, err)
			conn.SetReadDeadline(time.Now().Add(patience))
			got, err := io.ReadAll(conn)
			require.Empty(t, got, "a peer that does not speak the protocol must get no bytes")
			require.False(t, isTimeout(err), "the connection must be closed")
		})
	}
	a, _ := open(t, "a", "one", "secret")
	conn, _, err := a.Dial(context.Background(), b.Addr().String(), CallService)
	require.NoError(t, err)
	conn.Close()
}

// TestALaterVersionIsWelcome checks that a node of a later version is accepted, at this node's version. Either side
// may dial.
func TestALaterVersionIsWelcome(t *testing.T) {
	dialer, acceptor := net.Pipe()
	secret := []byte("secret")
	received := make(chan error, 1)
	go func() {
		theirs, err := receive(acceptor, secret, welcomes(Identity{NodeID: "b"}))
		if err == nil && theirs.self.NodeID != "a" {
			err = errors.New("it is " + theirs.self.NodeID)
		}
		received <- err
	}()
	later := greeting{version: protocolVersion + 1, service: CallService, self: Identity{NodeID: "a"}}
	said := later.encode()
	_, err := dialer.Write(said)
	require.NoError(t, err)
	challenge, err := readChallenge(dialer)
	require.NoError(t, err)
	require.EqualValues(t, protocolVersion, challenge[len(magic)])
	_, err = dialer.Write(proof(secret, "dialer", said, challenge))
	require.NoError(t, err)
	_, _, err = readGreeting(dialer)
	require.NoError(t, err)
	_, err = io.CopyN(io.Discard, dialer, int64(macLen))
	require.NoError(t, err)
	require.NoError(t, readVerdict(dialer))
	require.NoError(t, <-received)

	challenge[len(magic)] = protocolVersion + 1
	_, err = readChallenge(bytes.NewReader(challenge))
	require.NoError(t, err)
}

func isTimeout(err error) bool {
	timeout, ok := err.(net.Error)
	return ok && timeout.Timeout()
}

// TestSilentHandshakesAreBounded checks that silent connections occupy only the bounded number of handshakes.
func TestSilentHandshakesAreBounded(t *testing.T) {
	b, _ := open(t, "b", "one", "secret")
	cut := 0
	var silent []net.Conn
	for range MaxHandshakes + 20 {
		conn, err := net.Dial("tcp", b.Addr().String())
		require.NoError(t, err)
		defer conn.Close()
		silent = append(silent, conn)
	}
	require.Eventually(t, func() bool {
		cut = 0
		for _, conn := range silent {
			conn.SetReadDeadline(time.Now().Add(time.Millisecond))
			if _, err := conn.Read(make([]byte, 1)); err != nil && !isTimeout(err) {
				cut++
			}
		}
		return cut >= 20
	}, patience, time.Millisecond)
	a, _ := open(t, "a", "one", "secret")
	conn, _, err := a.Dial(context.Background(), b.Addr().String(), CallService)
	require.NoError(t, err, "nodes must still connect")
	require.NoError(t, conn.Close())
}

func TestCallsEndWithTheConnection(t *testing.T) {
	a, _ := open(t, "a", "one", "secret")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	called := make(chan net.Conn, 1)
	silent := openPort(t, l, HubConfig{Secret: []byte("secret")}, PortConfig{
		Self: func() Identity { return Identity{NodeID: "s"} }, Logger: slog.New(slog.DiscardHandler),
	}, func(conn net.Conn, _ Identity) {
		if _, err := conn.Read(make([]byte, 1)); err == nil {
			called <- conn
			io.Copy(io.Discard, conn)
		}
	})
	defer silent.Close()
	client := NewClient(a, l.Addr().String(), "s")
	defer client.Close()
	failed := make(chan error)
	go func() {
		_, _, err := client.Call(context.Background(), 1, nil)
		failed <- err
	}()
	(<-called).Close()
	require.ErrorIs(t, <-failed, ErrNoAnswer)

	ctx := newEndingContext(t)
	go func() {
		_, _, err := client.Call(ctx, 1, nil)
		failed <- err
	}()
	<-called
	close(ctx.passed)
	require.ErrorIs(t, <-failed, ErrNoAnswer)

	require.NoError(t, silent.Close())
	_, _, err = client.Call(context.Background(), 1, nil)
	require.ErrorIs(t, err, ErrNotSent)
}

// serving starts a port of node b that answers calls with handle.
func serving(t *testing.T, handle Handler, atOnce ...byte) *Port {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return openPort(t, l, HubConfig{Secret: []byte("secret")}, PortConfig{
		Self:   func() Identity { return Identity{NodeID: "b", ClusterID: "one"} },
		Logger: slog.New(slog.DiscardHandler),
	}, func(conn net.Conn, from Identity) { ServeCalls(conn, from, handle, atOnce...) })
}

// TestCutWaitsForNobody checks that Cut closes connections during calls, and that Close waits for those calls.
func TestCutWaitsForNobody(t *testing.T) {
	caller, _ := open(t, "a", "one", "secret")
	asked, release := make(chan struct{}), make(chan struct{})
	stuck := serving(t, func(Identity, byte, []byte) (byte, []byte) {
		close(asked)
		<-release
		return 0, nil
	})
	client := NewClient(caller, stuck.Addr().String(), "b")
	defer client.Close()
	failed := make(chan error, 1)
	go func() {
		_, _, err := client.Call(context.Background(), 1, nil)
		failed <- err
	}()
	<-asked
	require.NoError(t, stuck.Cut())
	require.Error(t, <-failed)
	closed := make(chan error, 1)
	go func() { closed <- stuck.Close() }()
	select {
	case <-closed:
		t.Fatal("closed while a call is being answered")
	case <-time.After(20 * time.Millisecond):
	}
	close(release)
	require.NoError(t, <-closed)
}

// TestCallsAtOnceNeedNoSlot checks that a call whose method is answered at once gets its answer, however many calls
// wait.
func TestCallsAtOnceNeedNoSlot(t *testing.T) {
	const slow, quick = 1, 2
	caller, _ := open(t, "a", "one", "secret")
	asked, release := make(chan struct{}), make(chan struct{})
	busy := serving(t, func(_ Identity, method byte, _ []byte) (byte, []byte) {
		if method == slow {
			asked <- struct{}{}
			<-release
		}
		return method, nil
	}, quick)
	defer busy.Close()
	client := NewClient(caller, busy.Addr().String(), "b")
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var calls sync.WaitGroup
	for range maxCallsPerConn {
		calls.Go(func() { _, _, _ = client.Call(ctx, slow, nil) })
		<-asked
	}
	status, _, err := client.Call(ctx, quick, nil)
	close(release)
	calls.Wait()
	require.NoError(t, err)
	require.EqualValues(t, quick, status)
}

func TestHugeFramesEndTheConnection(t *testing.T) {
	a, _ := open(t, "a", "one", "secret")
	b, _ := open(t, "b", "one", "secret")
	conn, _, err := a.Dial(context.Background(), b.Addr().String(), CallService)
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte{255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	require.NoError(t, err)
	conn.SetReadDeadline(time.Now().Add(patience))
	_, err = conn.Read(make([]byte, 1))
	require.Error(t, err)
	require.False(t, isTimeout(err))
}

// FuzzGreeting checks that reading a greeting ends without a panic, and consumes no more than its bytes.
func FuzzGreeting(f *testing.F) {
	f.Add((&greeting{version: protocolVersion, service: RaftService, self: Identity{"a", "one"}}).encode())
	f.Add((&greeting{version: protocolVersion, service: CallService, group: 258, self: Identity{"a", "one"}}).encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		g, raw, err := readGreeting(bytes.NewReader(b))
		if err != nil {
			return
		}
		require.Equal(t, b[:len(raw)], raw)
		require.Equal(t, raw, g.encode())
	})
}

// dialAs connects from the given address of this machine.
func dialAs(t *testing.T, from, to string) net.Conn {
	conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).Dial("tcp", to)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// TestHandshakeFloodEvictsNoNode checks that many handshakes from one address do not evict a node's handshake
// from another. Connections with a complete handshake stay, also from that address.
func TestHandshakeFloodEvictsNoNode(t *testing.T) {
	b, _ := open(t, "b", "one", "secret")
	conn := dialAs(t, "127.0.0.1", b.Addr().String())
	conn.SetDeadline(time.Now().Add(patience))
	mine := newGreeting(CallService, 0, Identity{NodeID: "a", ClusterID: "one"})
	_, err := conn.Write(mine.encode())
	require.NoError(t, err)
	challenge, err := readChallenge(conn)
	require.NoError(t, err)
	for i := range 2 * MaxHandshakes {
		flooder := dialAs(t, "127.0.0.2", b.Addr().String())
		_, _ = flooder.Write(mine.encode()[:i%len(magic)]) // the port may have closed it already
	}
	require.Eventually(t, func() bool { return b.Evicted() >= MaxHandshakes }, patience, time.Millisecond)
	require.LessOrEqual(t, b.hub.handshakes.Len(), MaxHandshakes)
	_, err = conn.Write(proof([]byte("secret"), "dialer", mine.encode(), challenge))
	require.NoError(t, err)
	_, _, err = readGreeting(conn)
	require.NoError(t, err)
	_, err = io.CopyN(io.Discard, conn, int64(macLen))
	require.NoError(t, err)
	require.NoError(t, readVerdict(conn))

	evicted := b.Evicted()
	for range 2 * MaxHandshakes {
		dialAs(t, "127.0.0.1", b.Addr().String())
	}
	require.Eventually(t, func() bool { return b.Evicted() >= evicted+MaxHandshakes }, patience, time.Millisecond)
	_, err = conn.Write(appendFrame(nil, frame{number: 1, kind: 2, payload: []byte("x")}))
	require.NoError(t, err)
	answer, err := readFrame(bufio.NewReader(conn))
	require.NoError(t, err)
	require.Equal(t, "a:x", string(answer.payload))
}
