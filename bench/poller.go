package bench

import (
	"errors"
	"net"
	"time"
)

// connPoller polls the connections of an open loop. One thread serves them all: one that sends and
// others that it wakes to receive cost a quarter more, and wait for each other and for the
// server's where processors are few, which shows in all percentiles.
type connPoller interface {
	// wait waits for d, or until some connections have something to read, and returns their
	// numbers. They are valid until the next wait. It may return early.
	wait(d time.Duration) ([]int, error)
	// read reads what has come; errNotYet: nothing.
	read(i int, b []byte) (int, error)
	// write writes as much as the connection takes now.
	write(i int, b []byte) (int, error)
	close() error
}

var errNotYet = errors.New("nothing has come yet")

// takeConns hands the connections to a poller: the links only read from now on.
func (s *swarm) takeConns() (connPoller, error) {
	w, err := newConnPoller(mapOf(s.links, func(l *link) net.Conn { return l.conn }))
	if err != nil {
		return nil, err
	}
	for i, l := range s.links {
		l.conn, l.in.in = nil, polledConn{w, i}
	}
	return w, nil
}

// polledConn is one of them, to read from.
type polledConn struct {
	poller connPoller
	i      int
}

func (c polledConn) Read(b []byte) (int, error) { return c.poller.read(c.i, b) }
