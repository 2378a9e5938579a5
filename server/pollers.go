package server

import (
	"errors"
	"net"
	"sync"

	"github.com/weir-project/weir/server/evloop"
)

// pollers holds the event loops of a server. The first connection that can use them creates them. A cluster node has
// none, because each decision there waits for other nodes on its own goroutine.
type pollers struct {
	mu     sync.Mutex
	group  *evloop.Group
	failed bool
	closed bool
}

// poll registers nc with the event loops. It returns nil if nc must be served without a poller.
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
		s.Log.Debug("serving a client without a poller", "addr", nc.RemoteAddr(), "err", err)
		return nil
	}
	return polled
}

// get creates the group at its first use.
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

// close ends the event loops. The caller has closed all connections.
func (p *pollers) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.group != nil {
		_ = p.group.Close()
		p.group = nil
	}
}
