package server

import (
	"net"
	"sync"
	"sync/atomic"

	"github.com/weir-project/weir/internal/connlimit"
)

// handshakes holds the connections whose TLS handshake is in progress: at most MaxHandshakes.
type handshakes struct {
	table   *connlimit.Table
	running sync.WaitGroup // their goroutines

	mu     sync.Mutex
	closed bool
	all    map[net.Conn]struct{}
}

func newHandshakes(evicted *atomic.Int64) *handshakes {
	return &handshakes{table: connlimit.New(MaxHandshakes, 0, evicted), all: make(map[net.Conn]struct{})}
}

// begin registers a connection, and evicts another one if the table is full. It reports false when the server stops.
// Otherwise the caller starts a goroutine, which must call running.Done.
func (h *handshakes) begin(nc net.Conn) (*connlimit.Slot, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, false
	}
	slot, err := h.table.Admit(connlimit.SourceOf(nc.RemoteAddr().String()), func() { _ = nc.Close() })
	if err != nil { // cannot happen: every handshake can be evicted
		return nil, false
	}
	h.all[nc] = struct{}{}
	h.running.Add(1)
	return slot, true
}

// end removes a connection.
func (h *handshakes) end(nc net.Conn, slot *connlimit.Slot) {
	slot.Release()
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.all, nc)
}

// close closes all connections and rejects further ones.
func (h *handshakes) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for nc := range h.all {
		_ = nc.Close()
	}
}
