package peer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// The outcomes of a call without an answer.
var (
	// ErrNotSent: the other side has certainly not received the call.
	ErrNotSent = errors.New("not sent")
	// ErrNoAnswer: the other side may have carried out the call.
	ErrNoAnswer = errors.New("no answer")
)

// writeTimeout bounds the wait for a peer that does not read.
const writeTimeout = 5 * time.Second

// Client calls one other node over one connection. It opens the connection at the first call, and again when it is
// broken.
type Client struct {
	port *Port
	addr string
	want string // the id that the node must have; "": any
	// shares means that calls use the connection that all groups of two hosts share, if the other host can.
	shares bool

	dialing chan struct{} // holds one token, which allows to dial
	mu      sync.Mutex
	link    *link
	closed  bool
}

// NewClient returns a client for the node at addr. The node must have the given id, unless id is empty.
func NewClient(port *Port, addr, id string) *Client {
	c := &Client{port: port, addr: addr, want: id, dialing: make(chan struct{}, 1)}
	c.dialing <- struct{}{}
	return c
}

// NewAsker returns a client for questions to the node of this group at addr. Its calls use the connection that all
// groups of the two hosts share, unless the other host is too old.
func NewAsker(port *Port, addr, id string) *Client {
	c := NewClient(port, addr, id)
	c.shares = true
	return c
}

// Call sends a request and waits for its answer or the end of ctx. It does not send a payload longer than MaxPayload.
// Its error is ErrNotSent or ErrNoAnswer.
func (c *Client) Call(ctx context.Context, method byte, payload []byte) (status byte, answer []byte, err error) {
	if len(payload) > MaxPayload {
		return 0, nil, fmt.Errorf("%w: %d bytes, and a call carries at most %d", ErrNotSent, len(payload), MaxPayload)
	}
	if c.shares {
		status, answer, err = c.port.callShared(ctx, c.addr, c.want, method, payload)
		if !errors.Is(err, ErrNotShared) {
			return status, answer, err
		}
	}
	for {
		l, err := c.connect(ctx)
		if err != nil {
			return 0, nil, fmt.Errorf("%w: %w", ErrNotSent, err)
		}
		status, answer, err = l.call(ctx, method, payload)
		if !errors.Is(err, errIdle) {
			return status, answer, err
		}
	}
}

// errIdle is the error of a call on a connection that CloseIdle has just closed.
var errIdle = fmt.Errorf("%w: the connection was idle", ErrNotSent)

// CloseIdle closes the connection if no call has used it for a time. The next call opens it again.
func (c *Client) CloseIdle(after time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link != nil && c.link.retire(after) {
		<-c.link.ended
		c.link = nil
	}
}

// Close ends the connection; calls in flight end with ErrNoAnswer.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.link != nil {
		c.link.fail()
		<-c.link.ended
	}
}

func (c *Client) connect(ctx context.Context) (*link, error) {
	select {
	case <-c.dialing:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { c.dialing <- struct{}{} }()
	if l := c.current(); l != nil {
		return l, nil
	}
	conn, who, err := c.port.Dial(ctx, c.addr, CallService)
	if err != nil {
		return nil, err
	}
	if c.want != "" && who.NodeID != c.want {
		conn.Close()
		return nil, fmt.Errorf("%w: %s is %q, not %q", ErrWrongID, c.addr, who.NodeID, c.want)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		conn.Close()
		return nil, net.ErrClosed
	}
	c.link = newLink(conn)
	return c.link, nil
}

// current returns the link if it is usable.
func (c *Client) current() *link {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link == nil || c.link.broken() {
		return nil
	}
	return c.link
}

// link is one connection and the calls that wait for an answer on it.
type link struct {
	conn  net.Conn
	ended chan struct{} // closed when the reader has ended

	mu      sync.Mutex
	next    uint64
	waiting map[uint64]chan frame // nil once broken
	used    time.Time             // when the last call began
	heard   time.Time             // when the last answer arrived
	idle    bool                  // retire has closed it
	writing sync.Mutex
}

func newLink(conn net.Conn) *link {
	l := &link{conn: conn, waiting: map[uint64]chan frame{}, ended: make(chan struct{}), used: time.Now()}
	go l.read()
	return l
}

func (l *link) broken() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting == nil
}

// retire closes the connection if no call has used it for a time, and reports whether it does.
func (l *link) retire(after time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting == nil || len(l.waiting) > 0 || time.Since(l.used) < after {
		return false
	}
	l.idle, l.waiting = true, nil
	l.conn.Close()
	return true
}

// fail ends the connection and every call on it.
func (l *link) fail() {
	l.conn.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, answer := range l.waiting {
		close(answer)
	}
	l.waiting = nil
}

func (l *link) read() {
	defer close(l.ended)
	defer l.fail()
	r := bufio.NewReaderSize(l.conn, groupBufferBytes)
	for {
		f, err := readFrame(r)
		if err != nil {
			return
		}
		l.mu.Lock()
		l.heard = time.Now()
		if answer, ok := l.waiting[f.number]; ok {
			delete(l.waiting, f.number)
			answer <- f
		}
		l.mu.Unlock()
	}
}

// silentSince reports whether no answer has arrived since a time.
func (l *link) silentSince(at time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.heard.Before(at)
}

// register adds a call to the waiting calls and returns its number. It reports false if the link is broken.
func (l *link) register() (uint64, chan frame, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting == nil {
		return 0, nil, false
	}
	l.next++
	l.used = time.Now()
	answer := make(chan frame, 1)
	l.waiting[l.next] = answer
	return l.next, answer, true
}

// forget removes a call from the waiting calls.
func (l *link) forget(number uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.waiting, number)
}

// notSent returns the error of a call that the link did not take.
func (l *link) notSent() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.idle {
		return errIdle
	}
	return ErrNotSent
}

// call sends a call and waits for its answer. A call that is not answered in time ends the connection only if nothing
// else was answered meanwhile: one slow call must not interrupt the others.
func (l *link) call(ctx context.Context, method byte, payload []byte) (byte, []byte, error) {
	began := time.Now()
	number, answer, ok := l.register()
	if !ok {
		return 0, nil, l.notSent()
	}
	if err := l.write(appendFrame(make([]byte, 0, 4+frameHead+len(payload)), frame{number: number, kind: method,
		payload: payload})); err != nil {
		l.fail()
		return 0, nil, fmt.Errorf("%w: %w", ErrNoAnswer, err)
	}
	select {
	case f, ok := <-answer:
		if !ok {
			return 0, nil, ErrNoAnswer
		}
		return f.kind, f.payload, nil
	case <-ctx.Done():
		if late(ctx) && l.silentSince(began) {
			// The peer is stuck or unreachable, so the next call should open a new connection.
			l.fail()
		}
		l.forget(number)
		return 0, nil, fmt.Errorf("%w: %w", ErrNoAnswer, ctx.Err())
	}
}

func (l *link) write(b []byte) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.conn.SetWriteDeadline(time.Now().Add(writeTimeout))
	_, err := l.conn.Write(b)
	return err
}
