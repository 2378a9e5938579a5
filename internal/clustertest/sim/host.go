package sim

import (
	"errors"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weir-project/weir/raftstore"
)

// host is one machine: the state that survives its processes.
type host struct {
	sim      *Simulation
	id, addr string
	zone     string
	clock    *clock

	mu       sync.Mutex
	mem      *vfs.MemFS
	now      *process // nil while none runs
	starting bool
	removed  bool // its removal was requested
	gone     bool // it must not be started again
	lost     bool // its disk was lost at least once
}

// is reports whether a node's id belongs to this host, in any incarnation.
func (h *host) is(id string) bool { return raftstore.IsIncarnationOf(id, h.id) }

// running returns the host's process, or nil.
func (h *host) running() *process {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

// wasLost reports whether the disk was lost at least once.
func (h *host) wasLost() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lost
}

// start starts a process on the content of the disk, unless a process runs.
func (h *host) start() {
	h.mu.Lock()
	if h.now != nil || h.gone || h.starting {
		h.mu.Unlock()
		return
	}
	h.starting = true
	p := &process{host: h, dead: make(chan struct{}), closed: make(chan struct{})}
	p.disk = newDisk(h.mem, func() { p.crash("disk error under the images", 100, 0) })
	h.mu.Unlock()
	err := p.open()
	if err != nil {
		p.notStarted(err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.starting = false
	switch {
	case err != nil:
	case p.over(): // it crashed during the start
		h.sim.crashed.Go(p.closeCrashed)
	default:
		h.now = p
	}
}

// notStarted judges the reason why a process did not start.
func (p *process) notStarted(err error) {
	if !p.disk.hasFailed() {
		if !p.mayStayOut(err) {
			p.host.sim.violation("%s does not start: %v", p.host.id, err)
		}
		p.host.mu.Lock()
		p.host.gone = true
		p.host.mu.Unlock()
	}
	p.crash("it did not start", 100, 0)
}

// mayStayOut reports whether a process does not start because it was removed. It was stopped when its last group had
// ended, a moment before it would have stopped itself.
func (p *process) mayStayOut(err error) bool {
	return p.host.leaving() && (errors.Is(err, raftstore.ErrRemoved) || errors.Is(err, raftstore.ErrRemovedID))
}
