package peer

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/hashicorp/raft"
)

// Streams implements raft.StreamLayer on a port.
type Streams struct {
	port      *Port
	advertise string
	// expect returns the id of the node that should answer at an address, or "" if none is known.
	expect func(addr string) string
}

var _ raft.StreamLayer = (*Streams)(nil)

// Raft returns the port's streams for the Raft library. Other nodes reach this node at the address advertise.
func (p *Port) Raft(advertise string, expect func(addr string) string) *Streams {
	return &Streams{port: p, advertise: advertise, expect: expect}
}

// Dial opens a stream to the node at an address.
func (s *Streams) Dial(addr raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	conn, who, err := s.port.Dial(ctx, string(addr), RaftService)
	if err != nil {
		return nil, err
	}
	if want := s.expect(string(addr)); want != "" && want != who.NodeID {
		conn.Close()
		return nil, fmt.Errorf("%w: %s is %q, not %q", ErrWrongID, addr, who.NodeID, want)
	}
	return conn, nil
}

// Accept returns the next stream that another node has opened.
func (s *Streams) Accept() (net.Conn, error) {
	select {
	case conn := <-s.port.raft:
		return conn, nil
	case <-s.port.done:
		return nil, net.ErrClosed
	}
}

// Close does nothing, because the owner of the port closes it.
func (s *Streams) Close() error { return nil }

// Addr returns the advertised address.
func (s *Streams) Addr() net.Addr { return address(s.advertise) }

type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }
