package sim

import (
	"net"
	"syscall"
	"time"
)

// conn is one side of a connection.
type conn struct {
	in, out       *half
	local, remote address
	forget        func()
}

func (c *conn) Read(b []byte) (int, error) {
	for {
		n, wait, changed, err := c.in.receive(b)
		if n > 0 || err != nil {
			return n, err
		}
		if wait == 0 {
			<-changed
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-changed:
		case <-timer.C:
		}
		timer.Stop()
	}
}

func (c *conn) Write(b []byte) (int, error) {
	if err := c.out.send(packet{data: append([]byte(nil), b...)}); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Close ends the stream. The other side learns of it when the network delivers the end.
func (c *conn) Close() error {
	c.in.fail(net.ErrClosed)
	c.out.send(packet{fin: true})
	c.forget()
	return nil
}

// reset ends both directions on both sides.
func (c *conn) reset() {
	c.in.fail(syscall.ECONNRESET)
	c.out.fail(syscall.ECONNRESET)
}

// vanish ends this side only. The other side receives nothing more.
func (c *conn) vanish() {
	c.in.lose(net.ErrClosed)
	c.out.lose(nil)
}

func (c *conn) LocalAddr() net.Addr  { return c.local }
func (c *conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline bounds reads. Writes never block.
func (c *conn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

func (c *conn) SetReadDeadline(t time.Time) error {
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	c.in.deadline = t
	c.in.wakeLocked()
	return nil
}

func (c *conn) SetWriteDeadline(time.Time) error { return nil }

// address is the address of a simulated machine.
type address string

func (address) Network() string  { return "sim" }
func (a address) String() string { return string(a) }
