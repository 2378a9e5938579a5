package evloop

import (
	"io"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

// waiter lets one goroutine wait until a connection becomes readable or writable.
type waiter struct{ signal atomic.Pointer[chan struct{}] }

// arm starts a wait. The channel receives a value at the next event, and another at an event after that value was
// received.
func (w *waiter) arm() <-chan struct{} {
	signal := make(chan struct{}, 1)
	w.signal.Store(&signal)
	return signal
}

func (w *waiter) disarm() { w.signal.Store(nil) }

func (w *waiter) wake() {
	if signal := w.signal.Load(); signal != nil {
		select {
		case *signal <- struct{}{}:
		default: // a signal is already pending
		}
	}
}

// AwaitEnd returns a channel that receives a value when the peer sends no more or the connection is closed, until
// release. Within a read cycle the caller must first call Detach.
func (c *Conn) AwaitEnd() (ended <-chan struct{}, release func()) {
	ended = c.ended.arm()
	if c.ending.Load() || c.closed() {
		c.ended.wake()
	}
	return ended, c.ended.disarm
}

// Read reads, and blocks until data arrives. Within a read cycle the caller must first call Detach.
func (c *Conn) Read(b []byte) (int, error) {
	signal := c.readable.arm()
	defer c.readable.disarm()
	for {
		if c.overdue.Load() {
			return 0, os.ErrDeadlineExceeded
		}
		n, err := c.system(syscall.SYS_READ, b)
		switch {
		case err == syscall.EAGAIN:
			<-signal
		case err == nil && n == 0 && len(b) > 0:
			return 0, io.EOF
		default:
			return n, err
		}
	}
}

// Write writes all of b or fails. It returns os.ErrDeadlineExceeded if the peer accepts nothing until the deadline.
// Within a read cycle the caller must first call Detach.
func (c *Conn) Write(b []byte) (written int, err error) {
	n, err := c.writeSome(b)
	if err != syscall.EAGAIN {
		return n, err
	}
	signal := c.writable.arm()
	defer c.writable.disarm()
	for written = n; ; {
		n, err := c.writeSome(b[written:])
		written += n
		if err != syscall.EAGAIN {
			return written, err
		}
		if err := c.await(signal); err != nil {
			return written, err
		}
	}
}

// writeSome writes until all of b is written or an error occurs, which may be EAGAIN.
func (c *Conn) writeSome(b []byte) (written int, err error) {
	for written < len(b) {
		n, err := c.system(syscall.SYS_WRITE, b[written:])
		written += n
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

// await waits for a signal. It returns an error at the write deadline.
func (c *Conn) await(signal <-chan struct{}) error {
	var late <-chan time.Time
	if by := c.writeBy.Load(); by != 0 {
		timer := time.NewTimer(time.Until(time.Unix(0, by)))
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-signal:
		return nil
	case <-late:
		return os.ErrDeadlineExceeded
	}
}
