package evloop

import (
	"net"
	"sync"
	"syscall"
	"time"
)

// LocalAddr and RemoteAddr are those of the connection adopted.
func (c *Conn) LocalAddr() net.Addr  { return c.local }
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// alarm is a read deadline in the future.
type alarm struct {
	mu    sync.Mutex
	timer *time.Timer
}

// SetDeadline sets both deadlines.
func (c *Conn) SetDeadline(t time.Time) error {
	_ = c.SetWriteDeadline(t)
	return c.SetReadDeadline(t)
}

// SetWriteDeadline bounds the writes that begin to wait after it; zero: no bound.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	by := int64(0)
	if !t.IsZero() {
		by = t.UnixNano()
	}
	c.writeBy.Store(by)
	return nil
}

// SetReadDeadline lets reads fail from t on, and has a turn run then to notice it;
// zero: no bound. Any goroutine may call it.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.alarm.mu.Lock()
	defer c.alarm.mu.Unlock()
	c.stopTimer()
	left := time.Until(t)
	c.overdue.Store(!t.IsZero() && left <= 0)
	switch {
	case t.IsZero():
	case left <= 0:
		c.kick()
	default:
		var timer *time.Timer
		timer = time.AfterFunc(left, func() { c.ring(&timer) })
		c.alarm.timer = timer
	}
	return nil
}

// ring is the timer's: it counts if no other deadline was set meanwhile.
func (c *Conn) ring(timer **time.Timer) {
	c.alarm.mu.Lock()
	defer c.alarm.mu.Unlock()
	if c.alarm.timer == *timer {
		c.overdue.Store(true)
		c.kick()
	}
}

// stopTimer ends the alarm, if there is one. The caller holds its lock.
func (c *Conn) stopTimer() {
	if c.alarm.timer != nil {
		c.alarm.timer.Stop()
		c.alarm.timer = nil
	}
}

// CloseWrite tells the peer that there is no more to come.
func (c *Conn) CloseWrite() error {
	c.life.RLock()
	defer c.life.RUnlock()
	if c.fd < 0 {
		return net.ErrClosed
	}
	return syscall.Shutdown(c.fd, syscall.SHUT_WR)
}

// Close cuts the connection; whoever waits for it returns with an error, and a turn
// is run if none is under way. Any goroutine may call it.
func (c *Conn) Close() error {
	if !c.release() {
		return net.ErrClosed
	}
	_ = c.SetReadDeadline(time.Time{})
	c.writable.wake()
	c.ended.wake()
	c.kick()
	return nil
}

func (c *Conn) closed() bool {
	c.life.RLock()
	defer c.life.RUnlock()
	return c.fd < 0
}

// release closes the descriptor. It reports false when that was done before.
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
