package envoyrls

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/stats"

	"github.com/weir-project/weir/internal/connlimit"
	"github.com/weir-project/weir/server/service"
)

// rlsConns holds the open connections of Envoy. A connection is exempt from eviction while a complete call of an
// authenticated user is in flight, and counts as idle after it. Package connlimit defines the order of eviction. So
// clients without credentials can open connections and begin endless calls, but cannot lock out Envoy.
type rlsConns struct {
	count *atomic.Int64 // number of open connections

	Mu    sync.Mutex
	Table *connlimit.Table
	Open  map[string]*rlsConn // by the client's address

	sockets int64 // connections of Unix sockets since the start
}

func newRLSConns(most int, stats *service.RLSStats, evicted *atomic.Int64) *rlsConns {
	return &rlsConns{count: &stats.Conns, Table: connlimit.New(most, 0, evicted), Open: map[string]*rlsConn{}}
}

// rlsConn is a connection that releases its slot when it is closed.
type rlsConn struct {
	net.Conn
	of   *rlsConns
	Slot *connlimit.Slot
	from net.Addr
}

// RemoteAddr returns an address that no other connection has.
func (c *rlsConn) RemoteAddr() net.Addr { return c.from }

// socketAddr is the address of a client at a Unix socket, numbered because the system gives it none.
type socketAddr int64

func (socketAddr) Network() string  { return "unix" }
func (n socketAddr) String() string { return fmt.Sprintf("unix:%d", int64(n)) }

func (c *rlsConn) Close() error {
	c.of.remove(c)
	return c.Conn.Close()
}

// add registers a connection. It returns nil if all connections are busy.
func (all *rlsConns) add(nc net.Conn) *rlsConn {
	c := &rlsConn{Conn: nc, of: all, from: nc.RemoteAddr()}
	all.Mu.Lock()
	defer all.Mu.Unlock()
	if c.from.Network() == "unix" {
		all.sockets++
		c.from = socketAddr(all.sockets)
	}
	slot, err := all.Table.Admit(connlimit.SourceOf(nc.RemoteAddr().String()), func() { _ = nc.Close() })
	if err != nil {
		return nil
	}
	c.Slot = slot
	all.Open[c.from.String()] = c
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

// rlsListener accepts connections, and closes those that protected mode or the connection limit rejects.
type rlsListener struct {
	net.Listener
	*service.Service
	conns *rlsConns
	known bool // clients present a certificate
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

// inFlight exempts the connection of a call from eviction until done.
func inFlight(ctx context.Context) (done func()) {
	c, ok := ctx.Value(rlsConnKey{}).(*rlsConn)
	if !ok {
		return func() {}
	}
	c.Slot.Begin()
	return c.Slot.End
}

// rlsTags attaches a login memory and the rlsConn to the context of each connection. Package grpc offers no other way
// to attach data to a connection.
type rlsTags struct{ conns *rlsConns }

// TagConn is called for each new connection.
func (r rlsTags) TagConn(ctx context.Context, info *stats.ConnTagInfo) context.Context {
	r.conns.Mu.Lock()
	c := r.conns.Open[info.RemoteAddr.String()]
	r.conns.Mu.Unlock()
	if c != nil { // nil: it was evicted at once
		ctx = context.WithValue(ctx, rlsConnKey{}, c)
	}
	return service.WithLoginMemory(ctx)
}

// TagRPC, HandleRPC and HandleConn do nothing.
func (rlsTags) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }
func (rlsTags) HandleRPC(context.Context, stats.RPCStats)                       {}
func (rlsTags) HandleConn(context.Context, stats.ConnStats)                     {}
