package server

import (
	"net"
	"net/netip"
	"slices"
	"sync"
)

// handshakes are the connections whose TLS handshake is under way: at most
// MaxHandshakes.
type handshakes struct {
	running sync.WaitGroup // their goroutines

	mu     sync.Mutex
	closed bool
	all    []handshake // oldest first
}

type handshake struct {
	nc   net.Conn
	from netip.Addr
}

// begin counts a connection in, and makes room for it where there is none. It reports
// false when the server stops; the caller starts the goroutine otherwise.
func (h *handshakes) begin(nc net.Conn) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	if len(h.all) == MaxHandshakes {
		at := h.victim()
		_ = h.all[at].nc.Close()
		h.all = slices.Delete(h.all, at, at+1)
	}
	h.all = append(h.all, handshake{nc, sourceOf(nc.RemoteAddr().String())})
	h.running.Add(1)
	return true
}

// victim is the oldest handshake of the client that has most: one that has a few is
// not pushed out by one that floods.
func (h *handshakes) victim() (at int) {
	count := make(map[netip.Addr]int, MaxHandshakes)
	for _, one := range h.all {
		count[one.from]++
	}
	for i, one := range h.all {
		if count[one.from] > count[h.all[at].from] {
			at = i
		}
	}
	return at
}

// end counts a connection out; it may be out already.
func (h *handshakes) end(nc net.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = slices.DeleteFunc(h.all, func(one handshake) bool { return one.nc == nc })
}

// close ends all of them, and lets none begin.
func (h *handshakes) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for _, one := range h.all {
		_ = one.nc.Close()
	}
}
