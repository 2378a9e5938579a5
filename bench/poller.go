package bench

import (
	"errors"
	"net"
	"time"
)

// connPoller polls the connections of an open loop in one thread. A sender that wakes other threads to receive costs a
// quarter more. With few processors these threads also wait for each other and for the server, which shows in all
// percentiles.
type connPoller interface {
	// wait waits for d, or until connections have data to read, and returns their numbers. The numbers are valid until
	// the next wait. It may return early.
	wait(d time.Duration) ([]int, error)
	// read reads the data that has arrived. It returns errNotYet if there is none.
	read(i int, b []byte) (int, error)
	// write writes as much as the connection accepts now.
	write(i int, b []byte) (int, error)
	close() error
}

var errNotYet = errors.New("nothing has come yet")

// takeConns moves the connections to a poller. Afterwards the links only read.
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

// polledConn reads from one connection of a poller.
type polledConn struct {
	poller connPoller
	i      int
}

func (c polledConn) Read(b []byte) (int, error) { return c.poller.read(c.i, b) }
