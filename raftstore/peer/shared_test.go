package peer

import (
	"context"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/certs/certtest"
)

// sharingGroup opens a port that answers every message on a shared connection with its group, kind and body.
func sharingGroup(t *testing.T, h *Hub, group uint16, id string) *Port {
	p := groupOf(t, h, group, id)
	p.AnswerShared(func(kind byte, body []byte, _ <-chan struct{}) ([]byte, error) {
		return fmt.Appendf(nil, "%d:%c:%s", group, kind, body), nil
	})
	return p
}

func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// linkTo returns the shared connection of a hub to an address.
func linkTo(h *Hub, addr string) *sharedLink {
	h.shared.mu.Lock()
	d := h.shared.byAddr[addr]
	h.shared.mu.Unlock()
	if d == nil {
		return nil
	}
	<-d.ready
	return d.link
}

// TestGroupsShareAConnection checks that the messages of all groups use one connection, and that each reaches the
// group that it names.
func TestGroupsShareAConnection(t *testing.T) {
	near, _ := openHub(t, "secret")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	counted := &countingListener{Listener: l}
	far := NewHub(counted, HubConfig{Secret: []byte("secret"), Logger: near.config.Logger})
	t.Cleanup(func() { far.Close() })
	const groups, messages = 5, 20
	var asks sync.WaitGroup
	for g := range uint16(groups) {
		from := sharingGroup(t, near, g, fmt.Sprint("a", g))
		sharingGroup(t, far, g, fmt.Sprint("b", g))
		for i := range messages {
			asks.Go(func() {
				m := Message{Addr: far.Addr().String(), To: fmt.Sprint("b", g), Kind: 'k', Patient: i%2 == 0,
					Body: fmt.Append(nil, i)}
				answer, err := from.AskShared(soon(t), m)
				require.NoError(t, err)
				require.Equal(t, fmt.Sprintf("%d:k:%d", g, i), string(answer))
			})
		}
	}
	asks.Wait()
	require.EqualValues(t, 1, counted.accepted.Load())
}

type countingListener struct {
	net.Listener
	accepted atomic.Int32
}

func (l *countingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		l.accepted.Add(1)
	}
	return conn, err
}

// TestSharedMessagesAreJudged checks that each message is refused for the reasons for which a handshake is refused.
func TestSharedMessagesAreJudged(t *testing.T) {
	near, _ := openHub(t, "")
	far, _ := openHub(t, "")
	from, other := groupOf(t, near, 0, "a"), groupOf(t, near, 1, "a")
	serves := error(nil)
	to, err := far.Open(0, PortConfig{
		Self:       func() Identity { return Identity{"b", "cluster0"} },
		ServesRaft: func() error { return serves }, Logger: far.config.Logger,
	}, nil)
	require.NoError(t, err)
	ask := func(p *Port, id string) error {
		_, err := p.AskShared(soon(t), Message{Addr: far.Addr().String(), To: id})
		return err
	}
	err = ask(from, "b")
	require.ErrorContains(t, err, ErrNoGroup.Error(), "no handler yet")
	require.ErrorIs(t, err, ErrNotShared, "the only group of an older weir gets messages on streams alone")
	to.AnswerShared(func(byte, []byte, <-chan struct{}) ([]byte, error) { return nil, nil })
	require.NoError(t, ask(from, "b"))
	require.ErrorContains(t, ask(from, "c"), ErrWrongID.Error())
	require.ErrorContains(t, ask(other, "b"), ErrNoGroup.Error())
	serves = fmt.Errorf("lost its state")
	require.ErrorContains(t, ask(from, "b"), "lost its state")
	serves = nil
	from.config.Self = func() Identity { return Identity{"a", "cluster1"} }
	require.ErrorContains(t, ask(from, "b"), ErrCluster.Error())
	from.config.Self = func() Identity { return Identity{"b", "cluster0"} }
	require.ErrorContains(t, ask(from, "b"), ErrSameNode.Error())
}

// TestMessagesOfHosts checks that two hosts exchange messages that concern no group, also if one of them has no group. A
// host without the port refuses the message by itself, and nobody can open a stream to the port.
func TestMessagesOfHosts(t *testing.T) {
	near, _ := openHub(t, "")
	far, _ := openHub(t, "")
	from := groupOf(t, near, HostGroup, "a")
	m := Message{Addr: far.Addr().String(), To: "b", Kind: 'k', Body: []byte("x")}
	_, err := from.AskShared(soon(t), m)
	require.ErrorIs(t, err, ErrRefused)
	require.ErrorContains(t, err, ErrNoGroup.Error())
	sharingGroup(t, far, HostGroup, "b")
	answer, err := from.AskShared(soon(t), m)
	require.NoError(t, err)
	require.Equal(t, "65535:k:x", string(answer))
	conn, _, err := from.Dial(soon(t), far.Addr().String(), RaftService)
	require.NoError(t, err)
	conn.SetReadDeadline(time.Now().Add(patience))
	_, err = conn.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
}

// TestCertificatesOfASharedConnection checks that each message on a shared connection names nodes that the certificates
// of both hosts certify. Only the first message of a connection has a handshake.
func TestCertificatesOfASharedConnection(t *testing.T) {
	ca := certtest.NewCA(t, "nodes")
	near, far := certifiedHub(t, ca, "a"), certifiedHub(t, ca, "b")
	from := sharingGroup(t, near, 0, "a~1")
	other := sharingGroup(t, near, 1, "c")
	sharingGroup(t, far, 0, "b~1")
	sharingGroup(t, far, 1, "b~1")
	ask := func(p *Port, to string) error {
		_, err := p.AskShared(soon(t), Message{Addr: far.Addr().String(), To: to})
		return err
	}
	require.NoError(t, ask(from, "b~1"))
	link := linkTo(near, far.Addr().String())
	require.ErrorIs(t, ask(from, "c"), ErrOtherName, "the host must not send to a node that its peer is not")
	require.ErrorContains(t, ask(other, "b~1"), ErrOtherName.Error(), "the sender must be the certified node")
	require.NoError(t, ask(from, "b~1"))
	require.Same(t, link, linkTo(near, far.Addr().String()))
}

// TestASlowGroupDelaysNoOther checks that messages of a group that does not answer end at their limits, while the
// connection and the other groups continue. A group has a limited number of messages that wait.
func TestASlowGroupDelaysNoOther(t *testing.T) {
	near, _ := openHub(t, "")
	far, _ := openHub(t, "")
	slow, quick := groupOf(t, near, 0, "a"), groupOf(t, near, 1, "a")
	stuck, waits := groupOf(t, far, 0, "b"), make(chan struct{}, maxSharedRequests)
	stuck.AnswerShared(func(_ byte, _ []byte, closed <-chan struct{}) ([]byte, error) {
		waits <- struct{}{}
		<-closed
		return nil, nil
	})
	sharingGroup(t, far, 1, "b")
	m := Message{Addr: far.Addr().String(), To: "b"}
	ctx, cancel := context.WithCancel(t.Context())
	var asks sync.WaitGroup
	for range maxSharedRequests {
		asks.Go(func() {
			_, err := slow.AskShared(ctx, m)
			require.ErrorIs(t, err, ErrNoAnswer)
		})
	}
	for range maxSharedRequests {
		<-waits
	}
	_, err := slow.AskShared(soon(t), m)
	require.ErrorContains(t, err, errBusy.Error())
	_, err = quick.AskShared(soon(t), m)
	require.NoError(t, err)
	link := linkTo(near, m.Addr)
	cancel()
	asks.Wait()
	_, err = quick.AskShared(soon(t), m)
	require.NoError(t, err)
	require.Same(t, link, linkTo(near, m.Addr), "the connection must not end while other groups are answered")
	require.NoError(t, stuck.Close())
	_, err = slow.AskShared(soon(t), m)
	require.ErrorContains(t, err, ErrNoGroup.Error())
}

// TestASilentSharedConnectionEnds checks that a message without an answer ends a connection on which nothing arrives,
// and that the next message opens another.
func TestASilentSharedConnectionEnds(t *testing.T) {
	near, _ := openHub(t, "")
	far, _ := openHub(t, "")
	from, to := groupOf(t, near, 0, "a"), groupOf(t, far, 0, "b")
	asked := make(chan struct{}, 1)
	to.AnswerShared(func(_ byte, body []byte, closed <-chan struct{}) ([]byte, error) {
		if len(body) > 0 {
			asked <- struct{}{}
			<-closed
		}
		return nil, nil
	})
	m := Message{Addr: far.Addr().String(), To: "b", Body: []byte("no answer")}
	link, err := from.sharedLink(soon(t), m.Addr)
	require.NoError(t, err)
	ctx, ended := newEndingContext(t), make(chan error, 1)
	go func() { _, err := from.AskShared(ctx, m); ended <- err }()
	<-asked
	close(ctx.passed)
	require.ErrorIs(t, <-ended, ErrNoAnswer)
	<-link.done
	m.Body = nil
	require.Eventually(t, func() bool {
		_, err := from.AskShared(soon(t), m)
		return err == nil
	}, 10*time.Second, time.Millisecond)
	require.NotSame(t, link, linkTo(near, m.Addr))
}

// TestAPortThatClosesEndsItsMessages checks that the end of a group ends its messages at both ends, and no others.
func TestAPortThatClosesEndsItsMessages(t *testing.T) {
	near, _ := openHub(t, "")
	far, _ := openHub(t, "")
	from, other := groupOf(t, near, 0, "a"), groupOf(t, near, 1, "a")
	begun := make(chan struct{}, 2)
	for g := range uint16(2) {
		groupOf(t, far, g, "b").AnswerShared(func(_ byte, _ []byte, closed <-chan struct{}) ([]byte, error) {
			begun <- struct{}{}
			<-closed
			return nil, fmt.Errorf("closed")
		})
	}
	errs, others := make(chan error, 1), make(chan error, 1)
	m := Message{Addr: far.Addr().String(), To: "b"}
	go func() { _, err := from.AskShared(soon(t), m); errs <- err }()
	go func() { _, err := other.AskShared(soon(t), m); others <- err }()
	<-begun
	<-begun
	require.NoError(t, from.Close())
	require.ErrorIs(t, <-errs, net.ErrClosed)
	select {
	case err := <-others:
		require.Fail(t, "another group's message ended", "%v", err)
	default:
	}
	require.NoError(t, near.Close())
	require.Error(t, <-others)
}

// TestAnOlderHostSharesNoConnection checks that a host that refuses the service is served by streams, and is not
// asked again at once.
func TestAnOlderHostSharesNoConnection(t *testing.T) {
	near, _ := openHub(t, "")
	from := groupOf(t, near, 1, "a")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	dials := make(chan struct{}, 10)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			dials <- struct{}{}
			receive(conn, nil, func(theirs greeting) (Identity, error) { // as an older Port.judge
				return Identity{NodeID: "b"}, fmt.Errorf("%w (service %q)", ErrNotWeir, byte(theirs.service))
			})
			conn.Close()
		}
	}()
	defer l.Close()
	for range 3 {
		_, err = from.AskShared(soon(t), Message{Addr: l.Addr().String(), To: "b"})
		require.ErrorIs(t, err, ErrNotShared)
	}
	require.Len(t, dials, 1)
}

// TestEnvelopes checks that an envelope survives its encoding, and that a shortened one is refused.
func TestEnvelopes(t *testing.T) {
	e := envelope{group: 258, from: Identity{"a", "one"}, to: "b"}
	b := e.seal([]byte("message"))
	require.Equal(t, "\x02\x01\x01a\x03one\x01bmessage", string(b))
	got, message, err := unseal(b)
	require.NoError(t, err)
	require.Equal(t, e, got)
	require.Equal(t, "message", string(message))
	for n := range len(b) - len("message") {
		_, _, err := unseal(b[:n])
		require.ErrorIs(t, err, errEnvelope)
	}
	_, _, err = unseal(append([]byte{0, 0, MaxNameLen + 1}, make([]byte, 200)...))
	require.ErrorIs(t, err, errEnvelope)
}

// writes records when a connection is written to, and what.
type writes struct {
	net.Conn
	began time.Time
	at    []time.Duration
	bytes []int
}

func (w *writes) Write(b []byte) (int, error) {
	w.at, w.bytes = append(w.at, time.Since(w.began)), append(w.bytes, len(b))
	return len(b), nil
}

func (w *writes) SetWriteDeadline(time.Time) error { return nil }

// TestPatientFramesAreWrittenTogether checks that patient frames wait for others at most their patience, and that a
// frame that is not patient is written at once, with all that wait.
func TestPatientFramesAreWrittenTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const patience, one = 10 * time.Millisecond, 4 + frameHead
		o, w, done := newOutbox(), &writes{began: time.Now()}, make(chan struct{})
		go o.run(w, patience, done)
		require.True(t, o.add(frame{}, true))
		time.Sleep(patience / 2)
		require.True(t, o.add(frame{}, true))
		time.Sleep(patience)
		require.True(t, o.add(frame{}, true))
		time.Sleep(patience / 2)
		require.True(t, o.add(frame{}, false))
		synctest.Wait()
		close(done)
		synctest.Wait()
		require.Equal(t, []time.Duration{patience, 2 * patience}, w.at)
		require.Equal(t, []int{2 * one, 2 * one}, w.bytes)
		require.False(t, o.add(frame{}, true), "the connection has ended")
	})
}

// TestTheOutboxIsBounded checks that frames for a connection that nobody reads are refused at the limit.
func TestTheOutboxIsBounded(t *testing.T) {
	o := newOutbox()
	f := frame{payload: make([]byte, maxOutboxBytes/4)}
	added := slices.Repeat([]bool{true}, 3)
	for i := range added {
		added[i] = o.add(f, true)
	}
	require.Equal(t, []bool{true, true, true}, added)
	require.False(t, o.add(f, true))
	o.take()
	require.True(t, o.add(f, true))
}

// TestFramesOfOneMomentShareAWrite checks that frames which several goroutines add at the same moment are written
// together, although no write is under way. With one processor the test is exact, except for a goroutine that the
// scheduler interrupts.
func TestFramesOfOneMomentShareAWrite(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const frames = 20
	o, w, done := newOutbox(), &writes{began: time.Now()}, make(chan struct{})
	var adding, writing sync.WaitGroup
	writing.Go(func() { o.run(w, time.Minute, done) })
	runtime.Gosched() // the writer waits
	for range frames {
		adding.Go(func() { o.add(frame{}, false) })
	}
	adding.Wait()
	for waiting := 1; waiting > 0; runtime.Gosched() {
		o.mu.Lock()
		waiting = len(o.pending)
		o.mu.Unlock()
	}
	close(done)
	writing.Wait()
	require.Less(t, len(w.bytes), frames/2)
}
