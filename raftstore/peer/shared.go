package peer

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// ErrNotShared: the other host is too old for shared connections, or refuses them for this group. The caller uses a
// stream.
var ErrNotShared = errors.New("the host does not share connections between groups")

const (
	// unsharedFor is how long a host that refused a shared connection is not asked again.
	unsharedFor = 30 * time.Second
	// maxUnshared bounds the hosts whose refusal is remembered. Above it, all are forgotten.
	maxUnshared = 1024
	// maxSharedLinks bounds the shared connections that a host opens. One more host is served by streams.
	maxSharedLinks = 1024
)

// sharedLinks holds the shared connections that a hub has opened, one for each address.
type sharedLinks struct {
	mu       sync.Mutex
	byAddr   map[string]*sharedDial
	unshared map[string]time.Time // when a host refused a shared connection, by address
}

// sharedDial is the shared connection to an address, or the attempt to open it.
type sharedDial struct {
	ready chan struct{} // closed when the attempt has ended
	link  *sharedLink
	err   error
}

// sharedLink is a connection on which the groups of this host ask the groups of another host.
type sharedLink struct {
	conn *trackedConn
	out  *outbox
	done chan struct{} // closed when the connection has ended

	mu      sync.Mutex
	next    uint64
	waiting map[uint64]chan frame // nil once the connection has ended
	heard   time.Time             // time of the last frame
}

// Message is a request to a node of the same group on another host.
type Message struct {
	Addr, To string // the address of the host, and the id of the node in this group
	Kind     byte   // below 0x80
	Patient  bool   // the message may wait a moment for messages of other groups
	Body     []byte
}

// AskShared sends a message over the connection that all groups share, and returns the answer of PortConfig.Shared on
// the other host. The caller may retry on a stream if the error is ErrNotShared.
func (p *Port) AskShared(ctx context.Context, m Message) (answer []byte, err error) {
	l, err := p.sharedLink(ctx, m.Addr)
	if err != nil {
		return nil, err
	}
	if err := l.conn.vouched(m.To); err != nil {
		return nil, err
	}
	f := frame{kind: m.Kind, head: p.seal(m.To, nil), payload: m.Body}
	if len(f.head)+len(f.payload) > MaxPayload {
		return nil, ErrNotShared
	}
	if m.Patient {
		f.kind |= patientBit
	}
	f, err = l.ask(ctx, p.done, f, m.Patient)
	switch {
	case err != nil:
		return nil, fmt.Errorf("node at %s: %w", m.Addr, err)
	case f.kind != sharedAnswer && answersNoMessages(f.payload):
		return nil, fmt.Errorf("node at %s: %w: %w: %s", m.Addr, ErrNotShared, ErrRefused, f.payload)
	case f.kind != sharedAnswer:
		return nil, fmt.Errorf("node at %s: %w: %s", m.Addr, ErrRefused, f.payload)
	}
	return f.payload, nil
}

// answersNoMessages reports whether a refusal says that the group is there and answers no messages on the shared
// connection. The only group of an older weir never does, and any other group not before it has started.
func answersNoMessages(refusal []byte) bool {
	return bytes.HasPrefix(refusal, []byte(ErrNoGroup.Error())) && bytes.HasSuffix(refusal, []byte(notYet))
}

// sharedLink returns the shared connection to a host. It opens the connection if necessary.
func (p *Port) sharedLink(ctx context.Context, addr string) (*sharedLink, error) {
	s := &p.hub.shared
	s.mu.Lock()
	if time.Since(s.unshared[addr]) < unsharedFor {
		s.mu.Unlock()
		return nil, ErrNotShared
	}
	d := s.byAddr[addr]
	if d == nil {
		if len(s.byAddr) >= maxSharedLinks {
			s.mu.Unlock()
			return nil, ErrNotShared
		}
		if !p.hub.begin() {
			s.mu.Unlock()
			return nil, net.ErrClosed
		}
		d = &sharedDial{ready: make(chan struct{})}
		s.byAddr[addr] = d
		go p.dialShared(addr, d)
	}
	s.mu.Unlock()
	select {
	case <-d.ready:
		return d.link, d.err
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// dialShared opens a shared connection under the identity of this port, and keeps it until it ends.
func (p *Port) dialShared(addr string, d *sharedDial) {
	h := p.hub
	defer h.tasks.Done()
	conn, _, err := p.dial(h.life, &h.tracker, addr, SharedService)
	if err == nil {
		d.link = newSharedLink(conn)
	}
	d.err = err
	if errors.Is(err, ErrRefused) {
		d.err = fmt.Errorf("%w: %w", ErrNotShared, err)
		h.shared.refusedBy(addr)
	}
	if err != nil {
		h.shared.forget(addr)
	}
	close(d.ready)
	if err == nil {
		h.tasks.Go(func() { d.link.out.run(conn, sharedPatience, d.link.done) })
		d.link.read()
		h.shared.forget(addr)
	}
}

func (s *sharedLinks) forget(addr string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byAddr, addr)
}

func (s *sharedLinks) refusedBy(addr string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.unshared) >= maxUnshared {
		clear(s.unshared)
	}
	s.unshared[addr] = time.Now()
}

func newSharedLink(conn *trackedConn) *sharedLink {
	return &sharedLink{conn: conn, out: newOutbox(), done: make(chan struct{}), waiting: map[uint64]chan frame{}}
}

// read passes answers to their callers until the connection ends.
func (l *sharedLink) read() {
	defer l.fail()
	r := bufio.NewReaderSize(l.conn, sharedBufferBytes)
	for {
		f, err := readFrame(r)
		if err != nil {
			return
		}
		l.mu.Lock()
		l.heard = time.Now()
		answer, ok := l.waiting[f.number]
		delete(l.waiting, f.number)
		l.mu.Unlock()
		if ok {
			answer <- f
		}
	}
}

// fail ends the connection and every request on it.
func (l *sharedLink) fail() {
	l.conn.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting != nil {
		l.waiting = nil
		close(l.done)
	}
}

// ask sends a frame and waits for the answer. A request that is not answered in time ends the connection only if
// nothing else was answered meanwhile: one slow group must not interrupt the others. A caller that gives up before the
// deadline ends nothing.
func (l *sharedLink) ask(ctx context.Context, end <-chan struct{}, f frame, patient bool) (frame, error) {
	began := time.Now()
	answer := make(chan frame, 1)
	l.mu.Lock()
	if l.waiting == nil {
		l.mu.Unlock()
		return frame{}, ErrNotSent
	}
	l.next++
	f.number = l.next
	l.waiting[f.number] = answer
	l.mu.Unlock()
	defer l.abandon(f.number)
	if !l.out.add(f, patient) {
		return frame{}, ErrNotSent
	}
	select {
	case f := <-answer:
		return f, nil
	case <-l.done:
		return frame{}, ErrNoAnswer
	case <-end:
		return frame{}, net.ErrClosed
	case <-ctx.Done():
		if late(ctx) && l.silentSince(began) {
			l.fail()
		}
		return frame{}, fmt.Errorf("%w: %w", ErrNoAnswer, ctx.Err())
	}
}

// late reports whether a wait ended because its time is over, and not because the caller gave up.
func late(ctx context.Context) bool { return errors.Is(ctx.Err(), context.DeadlineExceeded) }

// abandon forgets a request.
func (l *sharedLink) abandon(number uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.waiting, number)
}

// silentSince reports whether no frame has arrived since a time.
func (l *sharedLink) silentSince(at time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.heard.Before(at)
}
