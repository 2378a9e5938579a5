package envoyrls

import (
	"net"
	"sync"
	"sync/atomic"

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
	Open  map[*rlsConn]bool
}

func newRLSConns(most int, stats *service.RLSStats, evicted *atomic.Int64) *rlsConns {
	return &rlsConns{count: &stats.Conns, Table: connlimit.New(most, 0, evicted), Open: map[*rlsConn]bool{}}
}

// rlsConn is a connection that releases its slot when it is closed.
type rlsConn struct {
	net.Conn
	of   *rlsConns
	Slot *connlimit.Slot
	from *sender
}

// RemoteAddr returns an address that leads from a call to its connection.
func (c *rlsConn) RemoteAddr() net.Addr { return c.from }

// sender is the address of a client. Package grpc gives a call the address of its connection, and no other data of it
// without a large cost for each call.
type sender struct {
	net.Addr
	text  string // of Addr
	conn  *rlsConn
	login *service.LoginMemory
}

func (s *sender) String() string { return s.text }

func (c *rlsConn) Close() error {
	c.of.remove(c)
	return c.Conn.Close()
}

// add registers a connection. It returns nil if all connections are busy.
func (all *rlsConns) add(nc net.Conn) *rlsConn {
	addr := nc.RemoteAddr()
	c := &rlsConn{Conn: nc, of: all}
	c.from = &sender{addr, addr.String(), c, service.NewLoginMemory()}
	all.Mu.Lock()
	defer all.Mu.Unlock()
	slot, err := all.Table.Admit(connlimit.SourceOf(c.from.text), func() { _ = nc.Close() })
	if err != nil {
		return nil
	}
	c.Slot = slot
	all.Open[c] = true
	all.count.Add(1)
	return c
}

func (all *rlsConns) remove(c *rlsConn) {
	c.Slot.Release()
	all.Mu.Lock()
	defer all.Mu.Unlock()
	if all.Open[c] {
		delete(all.Open, c)
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
