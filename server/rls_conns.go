package server

import (
	"context"
	"net"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/stats"
)

// rlsConns are the open connections of Envoys. Where there are too many, the oldest that was
// never served makes room: who may not ask can open connections, and begin calls that never
// end, but cannot keep Envoys out by them.
type rlsConns struct {
	most  int
	count *atomic.Int64 // as many as are open

	mu     sync.Mutex
	open   map[string]*rlsConn // by the client's address
	opened uint64              // connections, ever
}

func newRLSConns(most int, count *atomic.Int64) *rlsConns {
	return &rlsConns{most: most, count: count, open: map[string]*rlsConn{}}
}

// rlsConn is a connection that leaves its room when it is closed.
type rlsConn struct {
	net.Conn
	of     *rlsConns
	number uint64 // in the order of opening
	served atomic.Bool
}

func (c *rlsConn) Close() error {
	c.of.remove(c)
	return c.Conn.Close()
}

// add takes a connection in, or returns nil when all that there is room for have been
// served.
func (all *rlsConns) add(nc net.Conn) *rlsConn {
	c := &rlsConn{Conn: nc, of: all}
	all.mu.Lock()
	victim, ok := all.makeRoom()
	if !ok {
		all.mu.Unlock()
		return nil
	}
	all.opened++
	c.number = all.opened
	all.open[nc.RemoteAddr().String()] = c
	all.count.Add(1)
	all.mu.Unlock()
	if victim != nil {
		_ = victim.Conn.Close()
	}
	return c
}

// makeRoom returns who is to be closed, if anyone, and whether there is room then. The
// caller holds mu.
func (all *rlsConns) makeRoom() (victim *rlsConn, ok bool) {
	if len(all.open) < all.most {
		return nil, true
	}
	for _, c := range all.open {
		if !c.served.Load() && (victim == nil || c.number < victim.number) {
			victim = c
		}
	}
	if victim != nil {
		all.drop(victim)
	}
	return victim, victim != nil
}

func (all *rlsConns) remove(c *rlsConn) {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.drop(c)
}

// drop forgets a connection, once. The caller holds mu.
func (all *rlsConns) drop(c *rlsConn) {
	if addr := c.RemoteAddr().String(); all.open[addr] == c {
		delete(all.open, addr)
		all.count.Add(-1)
	}
}

// rlsListener accepts Envoys, and turns away who may not come in and whoever is one too
// many.
type rlsListener struct {
	net.Listener
	srv   *Server
	conns *rlsConns
	known bool // who connects shows a certificate
}

func (l *rlsListener) Accept() (net.Conn, error) {
	for {
		nc, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if !l.known && l.srv.protects(nc) {
			l.srv.stats.Denied.Add(1)
		} else if c := l.conns.add(nc); c != nil {
			return c, nil
		} else {
			l.srv.stats.Rejected.Add(1)
		}
		_ = nc.Close()
	}
}

type rlsConnKey struct{}

// wasServed notes that the connection of a call is of somebody who may ask.
func wasServed(ctx context.Context) {
	if c, ok := ctx.Value(rlsConnKey{}).(*rlsConn); ok {
		c.served.Store(true)
	}
}

// rlsTags gives each connection its memory of logins, and each call its connection. It is
// the only place where package grpc lets a connection have anything.
type rlsTags struct{ conns *rlsConns }

// TagConn is called with each new connection.
func (r rlsTags) TagConn(ctx context.Context, info *stats.ConnTagInfo) context.Context {
	r.conns.mu.Lock()
	c := r.conns.open[info.RemoteAddr.String()]
	r.conns.mu.Unlock()
	if c != nil { // nil: it was pushed out at once
		ctx = context.WithValue(ctx, rlsConnKey{}, c)
	}
	return withLogin(ctx, nil)
}

// TagRPC, HandleRPC and HandleConn have nothing to do.
func (rlsTags) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }
func (rlsTags) HandleRPC(context.Context, stats.RPCStats)                       {}
func (rlsTags) HandleConn(context.Context, stats.ConnStats)                     {}
