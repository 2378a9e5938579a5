package peer

import (
	"net"
	"runtime"
	"sync"
	"time"
)

// maxOutboxBytes bounds the frames that wait for a connection. It is many times what the groups of two hosts have in
// flight, so only a connection that the other side does not read reaches it.
const maxOutboxBytes = 64 << 20

// maxSpareBytes bounds the memory that an outbox keeps between two writes. It has room for a full entry of each of a
// few groups.
const maxSpareBytes = 1 << 20

// outbox gathers frames of many goroutines and writes them to a connection together.
type outbox struct {
	mu      sync.Mutex
	pending []byte
	spare   []byte // becomes pending when pending is written; empty
	ended   bool

	some  chan struct{} // holds one token: a frame waits
	hurry chan struct{} // holds one token: a frame waits that is not patient
}

func newOutbox() *outbox {
	return &outbox{some: make(chan struct{}, 1), hurry: make(chan struct{}, 1)}
}

// add appends a frame. A patient frame may wait for others. add reports false if the frame will not be written.
func (o *outbox) add(f frame, patient bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended || len(o.pending)+len(f.head)+len(f.payload) > maxOutboxBytes {
		return false
	}
	o.pending = appendFrame(o.pending, f)
	signal(o.some)
	if !patient {
		signal(o.hurry)
	}
	return true
}

// signal leaves a token in a channel for one token.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// clearSignal removes the token from a channel.
func clearSignal(c chan struct{}) {
	select {
	case <-c:
	default:
	}
}

// run writes frames until the connection fails or done is closed. Patient frames wait for at most patience. Before a
// write, all goroutines run that can: groups often add their frames at the same moment, and one write takes them all.
func (o *outbox) run(conn net.Conn, patience time.Duration, done <-chan struct{}) {
	defer o.end()
	for {
		select {
		case <-o.some:
		case <-done:
			return
		}
		if !o.await(patience, done) {
			return
		}
		runtime.Gosched()
		b := o.take()
		conn.SetWriteDeadline(time.Now().Add(writeTimeout))
		if _, err := conn.Write(b); err != nil {
			conn.Close()
			return
		}
		o.reuse(b)
	}
}

// await waits for a frame that is not patient, for patience at most. It reports false if done is closed.
func (o *outbox) await(patience time.Duration, done <-chan struct{}) bool {
	select {
	case <-o.hurry: // the usual case, which needs no timer
		return true
	default:
	}
	select {
	case <-o.hurry:
	case <-time.After(patience):
	case <-done:
		return false
	}
	return true
}

// take returns the frames that wait.
func (o *outbox) take() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	b := o.pending
	o.pending, o.spare = o.spare, nil
	clearSignal(o.some)
	clearSignal(o.hurry)
	return b
}

// reuse keeps the memory of frames that are written.
func (o *outbox) reuse(b []byte) {
	if cap(b) > maxSpareBytes {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.spare == nil && !o.ended {
		o.spare = b[:0]
	}
}

// end makes add refuse frames from now on.
func (o *outbox) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended, o.pending, o.spare = true, nil, nil
}
