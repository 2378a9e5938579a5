package envoyrls

import (
	"context"
	"net"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/stats"

	"github.com/weir-project/weir/internal/connlimit"
	"github.com/weir-project/weir/server/service"
)

// rlsConns are the open connections of Envoys. A connection is proven once a call of a user
// who may ask has arrived whole on it: who may not ask can open connections, and begin calls
// that never end, but cannot keep Envoys out by them.
type rlsConns struct {
	count *atomic.Int64 // as many as are open

	Mu    sync.Mutex
	Table *connlimit.Table
	Open  map[string]*rlsConn // by the client's address
}

func newRLSConns(most int, stats *service.RLSStats, evicted *atomic.Int64) *rlsConns {
	return &rlsConns{count: &stats.Conns, Table: connlimit.New(most, 0, evicted), Open: map[string]*rlsConn{}}
}

// rlsConn is a connection that frees its slot when it is closed.
type rlsConn struct {
	net.Conn
	of   *rlsConns
	Slot *connlimit.Slot
}

func (c *rlsConn) Close() error {
	c.of.remove(c)
	return c.Conn.Close()
}

// add takes a connection in, or returns nil when all others are busy.
func (all *rlsConns) add(nc net.Conn) *rlsConn {
	c := &rlsConn{Conn: nc, of: all}
	all.Mu.Lock()
	defer all.Mu.Unlock()
	slot, err := all.Table.Admit(connlimit.SourceOf(nc.RemoteAddr().String()), func() { _ = nc.Close() })
	if err != nil {
		return nil
	}
	c.Slot = slot
	all.Open[nc.RemoteAddr().String()] = c
	all.count.Add(1)
	return c
}

func (all *rlsConns) remove(c *rlsConn) {
	c.Slot.Release()
	all.Mu.Lock()
	defer all.Mu.Unlock()
	if addr := c.RemoteAddr().String(); all.Open[addr] == c {
		delete(all.Open, addr)
		all.count.Add(-1)
	}
}

// rlsListener accepts Envoys, and turns away who may not come in and whoever is one too
// many.
type rlsListener struct {
	net.Listener
	*service.Service
	conns *rlsConns
	known bool // who connects shows a certificate
}

func (l *rlsListener) Accept() (net.Conn, error) {
	for {
		nc, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if !l.known && l.Protects(nc) {
			l.Wire.Denied.Add(1)
		} else if c := l.conns.add(nc); c != nil {
			return c, nil
		} else {
			l.Wire.Rejected.Add(1)
		}
		_ = nc.Close()
	}
}

type rlsConnKey struct{}

// inFlight keeps the connection of a call from being evicted until done.
func inFlight(ctx context.Context) (done func()) {
	c, ok := ctx.Value(rlsConnKey{}).(*rlsConn)
	if !ok {
		return func() {}
	}
	c.Slot.Begin()
	return c.Slot.End
}

// rlsTags gives each connection its memory of logins, and each call its connection. It is
// the only place where package grpc lets a connection have anything.
type rlsTags struct{ conns *rlsConns }

// TagConn is called with each new connection.
func (r rlsTags) TagConn(ctx context.Context, info *stats.ConnTagInfo) context.Context {
	r.conns.Mu.Lock()
	c := r.conns.Open[info.RemoteAddr.String()]
	r.conns.Mu.Unlock()
	if c != nil { // nil: it was pushed out at once
		ctx = context.WithValue(ctx, rlsConnKey{}, c)
	}
	return service.WithLoginMemory(ctx)
}

// TagRPC, HandleRPC and HandleConn have nothing to do.
func (rlsTags) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }
func (rlsTags) HandleRPC(context.Context, stats.RPCStats)                       {}
func (rlsTags) HandleConn(context.Context, stats.ConnStats)                     {}
