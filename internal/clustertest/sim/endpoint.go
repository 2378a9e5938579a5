package sim

import (
	"context"
	"net"
	"syscall"
	"time"
)

// backlog bounds the connections that wait to be accepted.
const backlog = 256

// endpoint is the network interface of one process: its listener and dialer.
type endpoint struct {
	net    *network
	addr   string
	accept chan net.Conn
	gone   chan struct{}
}

// attach makes a process reachable at an address.
func (n *network) attach(addr string) *endpoint {
	e := &endpoint{net: n, addr: addr, accept: make(chan net.Conn, backlog), gone: make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ends[addr] = e
	return e
}

// detach removes a process from the network at once. Its peers learn of it now or, as after a loss of power, after
// silentFor.
func (n *network) detach(e *endpoint, silentFor time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	select {
	case <-e.gone:
		return
	default:
		close(e.gone)
	}
	if n.ends[e.addr] == e {
		delete(n.ends, e.addr)
	}
	for c, of := range n.conns {
		if of != e {
			continue
		}
		if silentFor == 0 {
			c.reset()
			continue
		}
		c.vanish()
		time.AfterFunc(silentFor, c.reset)
	}
}

// Dial opens a connection.
func (e *endpoint) Dial(ctx context.Context, addr string) (net.Conn, error) {
	there, back := e.net.link(e.addr, addr), e.net.link(addr, e.addr)
	select {
	case <-time.After(there.delay(0) + back.delay(0)):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if there.cut.Load() || back.cut.Load() {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-e.gone:
			return nil, net.ErrClosed
		}
	}
	return e.net.connect(e, addr)
}

func (n *network) connect(from *endpoint, addr string) (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	select {
	case <-from.gone:
		return nil, net.ErrClosed
	default:
	}
	to := n.ends[addr]
	if to == nil {
		return nil, syscall.ECONNREFUSED
	}
	out, in := newHalf(n.linkLocked(from.addr, addr)), newHalf(n.linkLocked(addr, from.addr))
	near := &conn{in: in, out: out, local: address(from.addr), remote: address(addr)}
	far := &conn{in: out, out: in, local: address(addr), remote: address(from.addr)}
	near.forget, far.forget = func() { n.forget(near) }, func() { n.forget(far) }
	select {
	case to.accept <- far:
	default:
		return nil, syscall.ECONNREFUSED
	}
	n.conns[near], n.conns[far] = from, to
	return near, nil
}

func (n *network) forget(c *conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.conns, c)
}

// Accept returns the next connection that another process opened.
func (e *endpoint) Accept() (net.Conn, error) {
	select {
	case c := <-e.accept:
		return c, nil
	case <-e.gone:
		return nil, net.ErrClosed
	}
}

// Close stops listening. It does the same as detach, and has no effect after it.
func (e *endpoint) Close() error {
	e.net.detach(e, 0)
	return nil
}

func (e *endpoint) Addr() net.Addr { return address(e.addr) }
