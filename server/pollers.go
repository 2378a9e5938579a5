package server

import (
	"errors"
	"net"
	"sync"

	"github.com/weir-project/weir/server/evloop"
)

// pollers are the event loops of a server, made for the first connection that can
// use them. In a cluster there are none: decisions there wait for other nodes, each
// on a goroutine of its own anyway.
type pollers struct {
	mu     sync.Mutex
	group  *evloop.Group
	failed bool
	closed bool
}

// poll gives nc to the event loops. nil: nc stays as it is.
func (s *Server) poll(nc net.Conn) *evloop.Conn {
	switch nc.(type) {
	case *net.TCPConn, *net.UnixConn:
	default:
		return nil
	}
	if s.Replica != nil {
		return nil
	}
	group := s.pollers.get(s)
	if group == nil {
		return nil
	}
	polled, err := group.Adopt(nc)
	if err != nil {
		s.Log.Debug("a client is served without a poller", "addr", nc.RemoteAddr(), "err", err)
		return nil
	}
	return polled
}

// get makes the group when it is needed first.
func (p *pollers) get(s *Server) *evloop.Group {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.group == nil && !p.failed && !p.closed {
		group, err := evloop.New()
		if p.group, p.failed = group, err != nil; err != nil && !errors.Is(err, evloop.ErrUnsupported) {
			s.Log.Warn("no event loops; every client is served by a goroutine of its own", "err", err)
		}
	}
	return p.group
}

// close ends the loops. No connection is left.
func (p *pollers) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.group != nil {
		_ = p.group.Close()
		p.group = nil
	}
}
