package peer

import (
	"net"
	"sync"
)

// tracker holds open connections and the goroutines that serve them, so that its owner can end them all.
type tracker struct {
	tasks sync.WaitGroup

	mu     sync.Mutex
	closed bool
	conns  map[net.Conn]struct{}
}

func newTracker() tracker { return tracker{conns: map[net.Conn]struct{}{}} }

// cut closes all connections, and makes track close every later connection. It reports false if that was done before.
func (t *tracker) cut() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.closed = true
	for conn := range t.conns {
		conn.Close()
	}
	return true
}

// track adds a connection to those that cut closes. It reports false if cut has been called.
func (t *tracker) track(conn net.Conn) (*trackedConn, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		conn.Close()
		return nil, false
	}
	t.conns[conn] = struct{}{}
	return &trackedConn{Conn: conn, raw: conn, by: t}, true
}

// adopt takes a connection from another tracker, and adds a task for it. It reports false, and leaves the connection
// to the other tracker, if cut has been called.
func (t *tracker) adopt(conn *trackedConn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.conns[conn.raw] = struct{}{}
	t.tasks.Add(1)
	conn.by.forget(conn.raw) // after the insertion, because one tracker must hold conn at any time
	conn.by = t
	return true
}

// begin adds a task. It reports false if cut has been called.
func (t *tracker) begin() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.tasks.Add(1)
	}
	return !t.closed
}

func (t *tracker) forget(conn net.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.conns, conn)
}

// trackedConn removes itself from its tracker when it is closed. It closes the TCP connection without the closing
// message of TLS, because a peer that does not read would delay that message.
type trackedConn struct {
	net.Conn // raw, or TLS over it
	raw      net.Conn
	by       *tracker
	// sharedVersion is the version of the acceptor of a shared connection that this host has dialed.
	sharedVersion byte
}

func (c *trackedConn) Close() error {
	c.by.forget(c.raw)
	return c.raw.Close()
}
