package evloop

import (
	"net"
	"sync"
	"syscall"
	"time"
)

// LocalAddr and RemoteAddr return the addresses of the adopted connection.
func (c *Conn) LocalAddr() net.Addr  { return c.local }
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// readDeadline is the timer of a future read deadline.
type readDeadline struct {
	mu    sync.Mutex
	timer *time.Timer
}

// SetDeadline sets both deadlines.
func (c *Conn) SetDeadline(t time.Time) error {
	_ = c.SetWriteDeadline(t)
	return c.SetReadDeadline(t)
}

// SetWriteDeadline bounds the writes that start to wait after the call. Zero means no bound.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	by := int64(0)
	if !t.IsZero() {
		by = t.UnixNano()
	}
	c.writeBy.Store(by)
	return nil
}

// SetReadDeadline makes reads fail from t on, and starts a read cycle at t that handles it. Zero means no deadline. Any
// goroutine may call it.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.readDeadline.mu.Lock()
	defer c.readDeadline.mu.Unlock()
	c.stopTimer()
	left := time.Until(t)
	c.overdue.Store(!t.IsZero() && left <= 0)
	switch {
	case t.IsZero():
	case left <= 0:
		c.startCycle()
	default:
		var timer *time.Timer
		timer = time.AfterFunc(left, func() { c.expireRead(&timer) })
		c.readDeadline.timer = timer
	}
	return nil
}

// expireRead is called when the timer of a read deadline fires. It makes reads fail and starts a read cycle, unless
// another deadline was set meanwhile.
func (c *Conn) expireRead(timer **time.Timer) {
	c.readDeadline.mu.Lock()
	defer c.readDeadline.mu.Unlock()
	if c.readDeadline.timer == *timer {
		c.overdue.Store(true)
		c.startCycle()
	}
}

// stopTimer stops the timer, if any. The caller holds readDeadline.mu.
func (c *Conn) stopTimer() {
	if c.readDeadline.timer != nil {
		c.readDeadline.timer.Stop()
		c.readDeadline.timer = nil
	}
}

// CloseWrite closes the write side of the connection.
func (c *Conn) CloseWrite() error {
	c.life.RLock()
	defer c.life.RUnlock()
	if c.fd < 0 {
		return net.ErrClosed
	}
	return syscall.Shutdown(c.fd, syscall.SHUT_WR)
}

// Close closes the connection. Waiting goroutines return with an error, and a read cycle starts if none runs. Any
// goroutine may call it.
func (c *Conn) Close() error {
	if !c.release() {
		return net.ErrClosed
	}
	_ = c.SetReadDeadline(time.Time{})
	c.writable.wake()
	c.ended.wake()
	c.startCycle()
	return nil
}

func (c *Conn) closed() bool {
	c.life.RLock()
	defer c.life.RUnlock()
	return c.fd < 0
}

// release closes the descriptor. It reports false if the descriptor was already closed.
func (c *Conn) release() bool {
	c.life.Lock()
	defer c.life.Unlock()
	if c.fd < 0 {
		return false
	}
	c.group.put(c.fd, nil)
	_ = syscall.Close(c.fd)
	c.fd = -1
	return true
}
