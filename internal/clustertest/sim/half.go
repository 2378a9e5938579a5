package sim

import (
	"io"
	"os"
	"sync"
	"time"
)

// maxQueuedBytes models the socket buffers of a connection. Writing never blocks, because callers hold mutexes
// meanwhile. A full buffer counts as an expired deadline.
const maxQueuedBytes = 16 << 20

// packet is data in transit. fin ends the stream.
type packet struct {
	at   time.Time
	data []byte
	fin  bool
}

// half is one direction of a connection.
type half struct {
	link *link

	mu       sync.Mutex
	packets  []packet
	queued   int
	broken   error // the error of both sides; nil while the connection is open
	dropping bool  // data sent now is lost
	deaf     error // the error of the reader only
	deadline time.Time
	changed  chan struct{} // closed and replaced at each change
}

func newHalf(l *link) *half { return &half{link: l, changed: make(chan struct{})} }

// wake makes a waiting reader check again.
func (h *half) wake() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wakeLocked()
}

func (h *half) wakeLocked() {
	close(h.changed)
	h.changed = make(chan struct{})
}

func (h *half) send(p packet) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.dropping, h.broken != nil && h.link.cut.Load():
		return nil // the sender is not notified
	case h.broken != nil:
		return h.broken
	case h.queued+len(p.data) > maxQueuedBytes:
		return os.ErrDeadlineExceeded
	}
	p.at = time.Now().Add(h.link.delay(len(p.data)))
	if n := len(h.packets); n > 0 && h.packets[n-1].at.After(p.at) {
		p.at = h.packets[n-1].at // a stream keeps its order
	}
	h.packets = append(h.packets, p)
	h.queued += len(p.data)
	h.wakeLocked()
	return nil
}

func (h *half) fail(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.broken == nil {
		h.broken = err
		h.wakeLocked()
	}
}

// lose drops everything sent from now on. The reader gets err, if it is not nil.
func (h *half) lose(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dropping, h.deaf = true, err
	h.wakeLocked()
}

// receive takes the data that has arrived. Without data it returns the maximum wait (0: no limit), and the channel to
// wait for.
func (h *half) receive(b []byte) (n int, wait time.Duration, changed chan struct{}, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	switch {
	case h.broken != nil:
		return 0, 0, nil, h.broken
	case h.deaf != nil:
		return 0, 0, nil, h.deaf
	case !h.deadline.IsZero() && !now.Before(h.deadline):
		return 0, 0, nil, os.ErrDeadlineExceeded
	}
	if !h.deadline.IsZero() {
		wait = h.deadline.Sub(now)
	}
	if len(h.packets) == 0 || h.link.cut.Load() {
		return 0, wait, h.changed, nil
	}
	first := &h.packets[0]
	if ahead := first.at.Sub(now); ahead > 0 {
		if wait == 0 || ahead < wait {
			wait = ahead
		}
		return 0, wait, h.changed, nil
	}
	if first.fin {
		return 0, 0, nil, io.EOF
	}
	n = copy(b, first.data)
	h.queued -= n
	if first.data = first.data[n:]; len(first.data) == 0 {
		h.packets = h.packets[1:]
	}
	return n, 0, nil, nil
}
