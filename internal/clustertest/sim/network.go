package sim

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// usualDelay is the delay of a packet without faults.
const usualDelay = 200 * time.Microsecond

// link is one direction between two machines. A cut link holds all packets back, as TCP retransmits until the path is
// free. It corrupts nothing.
type link struct {
	cut     atomic.Bool
	delayNs atomic.Int64 // maximum; a packet takes between half of it and all
	longNs  atomic.Int64 // the maximum of a packet longer than those of a handshake, if that is more
}

// handshakeBytes is longer than a packet of a handshake, and shorter than a message of the Raft library.
const handshakeBytes = 160

func (l *link) delay(bytes int) time.Duration {
	most := l.delayNs.Load()
	if bytes > handshakeBytes {
		most = max(most, l.longNs.Load())
	}
	return time.Duration(most/2 + rand.Int64N(most/2+1))
}

// network connects machines by their addresses.
type network struct {
	mu    sync.Mutex
	ends  map[string]*endpoint
	links map[[2]string]*link
	conns map[*conn]*endpoint // one side of each, and its endpoint
}

func newNetwork() *network {
	return &network{ends: map[string]*endpoint{}, links: map[[2]string]*link{}, conns: map[*conn]*endpoint{}}
}

func (n *network) link(from, to string) *link {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.linkLocked(from, to)
}

func (n *network) linkLocked(from, to string) *link {
	l := n.links[[2]string{from, to}]
	if l == nil {
		l = &link{}
		l.delayNs.Store(int64(usualDelay))
		n.links[[2]string{from, to}] = l
	}
	return l
}

// setCut cuts or restores one direction.
func (n *network) setCut(from, to string, cut bool) {
	n.link(from, to).cut.Store(cut)
	n.wake()
}

// heal restores every link.
func (n *network) heal() {
	n.mu.Lock()
	for _, l := range n.links {
		l.cut.Store(false)
		l.delayNs.Store(int64(usualDelay))
		l.longNs.Store(0)
	}
	n.mu.Unlock()
	n.wake()
}

func (n *network) wake() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for c := range n.conns {
		c.in.wake()
	}
}

// resetSome resets each connection with the given probability.
func (n *network) resetSome(probability float64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for c := range n.conns {
		if rand.Float64() < probability {
			c.reset()
		}
	}
}
