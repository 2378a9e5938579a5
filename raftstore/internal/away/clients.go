package away

import (
	"context"
	"sync"

	"github.com/weir-project/weir/raftstore/internal/calls"
	"github.com/weir-project/weir/raftstore/peer"
)

// Clients are the connections for calls to other hosts, a Network. Operations have one of their own: a host answers a
// bounded number of calls of a connection at a time, and questions to a group without a leader wait.
type Clients struct {
	port func() *peer.Port
	self string

	mu    sync.Mutex
	known map[client]*peer.Client
}

type client struct {
	addr string
	asks bool // for questions and orders
}

// maxClients bounds the connections to other hosts. Above it, all are opened anew.
const maxClients = 1024

// NewClients returns connections from the port of a host, which is open before the first call. The host has the address
// self, and does not call itself.
func NewClients(port func() *peer.Port, self string) *Clients {
	return &Clients{port: port, self: self, known: map[client]*peer.Client{}}
}

// Call implements Network.
func (c *Clients) Call(ctx context.Context, addr string, payload []byte) (status byte, answer []byte, err error) {
	if addr == c.self {
		return 0, nil, peer.ErrNotSent
	}
	return c.of(client{addr, payload[headLen-1] != calls.Decide}).Call(ctx, calls.Group, payload)
}

// of returns the connection to a host.
func (c *Clients) of(to client) *peer.Client {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known) >= maxClients && c.known[to] == nil {
		for _, old := range c.known {
			go old.Close() // which waits for its reader
		}
		clear(c.known)
	}
	if c.known[to] == nil {
		c.known[to] = peer.NewClient(c.port(), to.addr, "")
	}
	return c.known[to]
}

// Close closes all connections.
func (c *Clients) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, client := range c.known {
		client.Close()
	}
}
