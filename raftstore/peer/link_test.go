package peer

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/certs/certtest"
)

// held counts the connections that a port keeps track of.
func (p *Port) held() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
}

// portOf starts a port of node b with a service of one's own.
func portOf(t *testing.T, serve func(conn net.Conn, from Identity)) *Port {
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := NewPort(listen, Config{
		Secret: []byte("secret"), Self: func() Identity { return Identity{NodeID: "b"} }, Logger: slog.New(slog.DiscardHandler),
	}, serve)
	t.Cleanup(func() { p.Close() })
	return p
}

// TestOneConnectionForAllCalls, which is let go of when it is closed.
func TestOneConnectionForAllCalls(t *testing.T) {
	a, _ := open(t, "a", "one", "secret")
	var served atomic.Int32
	b := portOf(t, func(conn net.Conn, from Identity) {
		served.Add(1)
		ServeCalls(conn, from, func(Identity, byte, []byte) (byte, []byte) { return 1, nil })
	})
	client := NewClient(a, b.Addr().String(), "")
	client.Close() // which has no connection
	client = NewClient(a, b.Addr().String(), "")
	for range 3 {
		_, _, err := client.Call(context.Background(), 1, make([]byte, 10))
		require.NoError(t, err, "no id is asked for")
	}
	require.EqualValues(t, 1, served.Load())
	require.Equal(t, 1, a.held())
	client.Close()
	require.Zero(t, a.held())
	_, _, err := client.Call(context.Background(), 1, nil)
	require.ErrorIs(t, err, net.ErrClosed)
	require.ErrorIs(t, err, ErrNotSent)
	require.Zero(t, a.held())
	require.Eventually(t, func() bool { return b.held() == 0 }, patience, time.Millisecond)
}

func TestACallIsBounded(t *testing.T) {
	a, _ := open(t, "a", "one", "secret")
	b := serving(t, func(_ Identity, _ byte, payload []byte) (byte, []byte) { return 1, payload[:1] })
	defer b.Close()
	client := NewClient(a, b.Addr().String(), "b")
	defer client.Close()
	_, _, err := client.Call(context.Background(), 1, make([]byte, MaxPayload))
	require.NoError(t, err)
	_, _, err = client.Call(context.Background(), 1, make([]byte, MaxPayload+1))
	require.ErrorIs(t, err, ErrNotSent)
	require.ErrorContains(t, err, "at most 8388599")
}

// TestAnotherNodeAnswers: it is let go of at once.
func TestAnotherNodeAnswers(t *testing.T) {
	a, _ := open(t, "a", "one", "secret")
	b, _ := open(t, "b", "one", "secret")
	client := NewClient(a, b.Addr().String(), "c")
	defer client.Close()
	_, _, err := client.Call(context.Background(), 1, nil)
	require.ErrorIs(t, err, ErrWrongID)
	require.ErrorIs(t, err, ErrNotSent)
	require.Zero(t, a.held())
	require.Eventually(t, func() bool { return b.held() == 0 }, patience, time.Millisecond)
}

// unwritable is a connection whose other side reads nothing and says nothing.
type unwritable struct{ net.Conn }

func (unwritable) Write([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }

func TestACallThatCannotBeWritten(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	l := newLink(unwritable{near})
	_, _, err := l.call(context.Background(), 1, nil)
	require.ErrorIs(t, err, ErrNoAnswer, "a part may have arrived")
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.True(t, l.broken())
	<-l.ended
	_, _, err = l.call(context.Background(), 1, nil)
	require.ErrorIs(t, err, ErrNotSent)
}

// deadlines notes those of writes, which fail.
type deadlines struct {
	net.Conn
	write  []time.Time
	closed bool
}

func (d *deadlines) SetWriteDeadline(at time.Time) error { d.write = append(d.write, at); return nil }
func (d *deadlines) Write([]byte) (int, error)           { return 0, os.ErrDeadlineExceeded }
func (d *deadlines) Close() error                        { d.closed = true; return nil }

// TestWritesAreBounded: a peer that does not read keeps nobody waiting, and a connection on
// which an answer was lost ends.
func TestWritesAreBounded(t *testing.T) {
	conn := &deadlines{}
	require.Error(t, (&link{conn: conn}).write([]byte("x")))
	require.Len(t, conn.write, 1)
	require.InDelta(t, 0, time.Until(conn.write[0])-writeTimeout, float64(time.Minute))
	a := answerer{conn: conn, handle: func(Identity, byte, []byte) (byte, []byte) { return 1, nil }}
	a.answer(frame{number: 1})
	require.True(t, conn.closed)
}

// TestStreamsToAnyNode: where no id is known any node may answer; another than the known one is
// let go of.
func TestStreamsToAnyNode(t *testing.T) {
	a, _ := open(t, "a", "one", "secret")
	b, _ := open(t, "b", "one", "secret")
	to := raft.ServerAddress(b.Addr().String())
	conn, err := a.Raft("a:1", func(string) string { return "" }).Dial(to, patience)
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	_, err = a.Raft("a:1", func(string) string { return "c" }).Dial(to, patience)
	require.ErrorIs(t, err, ErrWrongID)
	require.Zero(t, a.held())
}

// TestWhatAPortServes: calls and Raft, the latter while the node may take part, and no more.
func TestWhatAPortServes(t *testing.T) {
	no := errors.New("not now")
	p := Port{config: Config{Self: func() Identity { return Identity{NodeID: "b", ClusterID: "one"} }}}
	for _, c := range []struct {
		service Service
		from    Identity
		serves  func() error
		want    error
	}{
		{CallService, Identity{"a", "one"}, nil, nil}, {RaftService, Identity{"a", "one"}, nil, nil}, {RaftService, Identity{"a", ""}, nil, nil},
		{CallService, Identity{"a", "one"}, func() error { return no }, nil}, {RaftService, Identity{"a", "one"}, func() error { return no }, no},
		{RaftService, Identity{"a", "one"}, func() error { return nil }, nil},
		{'X', Identity{"a", "one"}, nil, ErrNotWeir}, {0, Identity{"a", "one"}, nil, ErrNotWeir},
		{CallService, Identity{"b", "one"}, nil, ErrSameNode}, {CallService, Identity{"a", "two"}, nil, ErrCluster},
	} {
		p.config.ServesRaft = c.serves
		require.ErrorIs(t, p.judge(c.service, c.from), c.want, "%q of %+v", c.service, c.from)
	}
	p.config.Self = func() Identity { return Identity{NodeID: "b"} }
	require.NoError(t, p.judge(CallService, Identity{"a", "two"}), "a newcomer")
}

// TestNoDeadlineStays: what bounds a handshake does not end the connection later.
func TestNoDeadlineStays(t *testing.T) {
	a, _ := open(t, "a", "one", "secret")
	b, _ := open(t, "b", "one", "secret")
	dial := a.config.Dialer
	var noted *noting
	a.config.Dialer = func(ctx context.Context, addr string) (net.Conn, error) {
		conn, err := dial(ctx, addr)
		noted = &noting{Conn: conn}
		return noted, err
	}
	conn, _, err := a.Dial(context.Background(), b.Addr().String(), CallService)
	require.NoError(t, err)
	defer conn.Close()
	require.Len(t, noted.all, 2)
	require.False(t, noted.all[0].IsZero())
	require.True(t, noted.all[1].IsZero())
}

// noting notes the deadlines of a connection.
type noting struct {
	net.Conn
	all []time.Time
}

func (n *noting) SetDeadline(at time.Time) error {
	n.all = append(n.all, at)
	return n.Conn.SetDeadline(at)
}

// An answer to no call, or a second answer, is passed over.
func TestAnswersThatNobodyWaitsFor(t *testing.T) {
	near, far := net.Pipe()
	l := newLink(near)
	done := make(chan error, 1)
	go func() {
		_, answer, err := l.call(context.Background(), 1, nil)
		if err == nil && string(answer) != "right" {
			err = errors.New("another answer")
		}
		done <- err
	}()
	_, err := io.ReadFull(far, make([]byte, 4+frameHead))
	require.NoError(t, err)
	for number, payload := range []string{"of none", "right", "of none"} {
		_, err := far.Write(appendFrame(nil, frame{number: uint64(number), payload: []byte(payload)}))
		require.NoError(t, err)
	}
	require.NoError(t, <-done)
	for range 3 {
		_, err = far.Write(appendFrame(nil, frame{number: 1}))
		require.NoError(t, err)
	}
	require.False(t, l.broken(), "and keeps nobody waiting")
	far.Close()
	<-l.ended
	require.True(t, l.broken())
}

// TestASilentNode takes no longer than the caller has time.
func TestASilentNode(t *testing.T) {
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listen.Close()
	a, _ := open(t, "a", "one", "secret")
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	_, _, err = a.Dial(ctx, listen.Addr().String(), CallService)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.Zero(t, a.held())
}

// A port that is closed takes no connection, whichever side opened it.
func TestAClosedPort(t *testing.T) {
	a, _ := open(t, "a", "one", "secret")
	b, _ := open(t, "b", "one", "secret")
	require.NoError(t, a.Close())
	require.NoError(t, a.Close())
	_, _, err := a.Dial(context.Background(), b.Addr().String(), CallService)
	require.ErrorIs(t, err, net.ErrClosed)
	near, far := net.Pipe()
	a.welcome(near)
	_, err = far.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	require.Zero(t, a.held())
}

// A connection whose service has ended is closed.
func TestAServiceThatEnds(t *testing.T) {
	a, _ := open(t, "a", "one", "secret")
	b := portOf(t, func(net.Conn, Identity) {})
	conn, _, err := a.Dial(context.Background(), b.Addr().String(), CallService)
	require.NoError(t, err)
	defer conn.Close()
	conn.SetReadDeadline(time.Now().Add(patience))
	_, err = conn.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
}

// TestWhoIsToBlame: only what the other side says of this one is a refusal.
func TestWhoIsToBlame(t *testing.T) {
	remote := &net.OpError{Op: "remote error", Err: errors.New("expired")}
	require.ErrorIs(t, explained(remote), ErrOwnRefused)
	for _, err := range []error{&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, io.EOF} {
		require.Equal(t, err, explained(err))
	}
}

// The dialing side says in its log what only certificates or flags mend, and only that.
func TestTheDialerComplainsOfCertificates(t *testing.T) {
	mine := certtest.NewCA(t, "nodes").Issue("a", nil)
	plain, _ := openWith(t, "b", "", nil)
	a, said := openWith(t, "a", "", &mine)
	_, _, err := a.Dial(context.Background(), plain.Addr().String(), CallService)
	require.Error(t, err)
	require.Eventually(t, func() bool { return said.has("no TLS with another node") }, patience, time.Millisecond)
	c, said := open(t, "c", "two", "secret")
	d, _ := open(t, "d", "one", "secret")
	_, _, err = c.Dial(context.Background(), d.Addr().String(), CallService)
	require.ErrorIs(t, err, ErrRefused)
	require.False(t, said.has("no TLS"))
}
