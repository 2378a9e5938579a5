package sim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	// closeCrashedAfter is when a crashed process is closed. Everything that it waited for has timed out by then.
	closeCrashedAfter = 15 * time.Second
	// maxClose bounds an orderly end: the transfer of leadership, and one exchange of the Raft library.
	maxClose = 15 * time.Second
)

// crash ends the process at this instant. The disk keeps the given percentage of the unsynced data. Peers learn of the
// crash after silentFor.
func (p *process) crash(why string, keepPercent int, silentFor time.Duration) {
	p.once.Do(func() {
		h := p.host
		h.sim.event("%s crashes (%s), keeps %d %%", h.id, why, keepPercent)
		close(p.dead)
		h.sim.net.detach(p.end, silentFor)
		h.mu.Lock()
		h.mem = h.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: keepPercent,
			RNG: rand.New(rand.NewPCG(h.sim.config.Seed, rand.Uint64()))})
		if h.now == p {
			h.now = nil
			h.sim.crashed.Go(p.closeCrashed)
		}
		h.mu.Unlock()
		p.disk.dead.Store(true)
		p.logs.release(true)
	})
}

// closeCrashed closes a crashed process. A process that cannot be closed is not a violation. The report counts it as
// a leak, because its goroutines stay.
func (p *process) closeCrashed() {
	time.Sleep(closeCrashedAfter)
	if err := p.close(); errors.Is(err, errHangs) {
		p.host.sim.report.leak()
	}
	p.closeLogs()
}

// errHangs reports that a node did not close.
var errHangs = fmt.Errorf("it has not closed after %v", maxClose)

// close closes the node. A second caller waits.
func (p *process) close() error {
	if !p.closing.Swap(true) {
		go func() {
			p.failure = p.node.Close()
			close(p.closed)
		}()
	}
	select {
	case <-p.closed:
		return p.failure
	case <-time.After(maxClose):
		return errHangs
	}
}

// stop ends the process in an orderly way.
func (p *process) stop() {
	h := p.host
	h.sim.event("%s is stopped", h.id)
	p.drain.Store(true)
	for p.calls.Load() > 0 {
		time.Sleep(10 * time.Millisecond)
	}
	err := p.close()
	if err != nil && !p.over() && !p.logs.hasHung() {
		h.sim.violation("%s could not be closed: %v", h.id, err)
	}
	if errors.Is(err, errHangs) {
		h.sim.report.leak()
	}
	p.once.Do(func() {
		close(p.dead)
		h.sim.net.detach(p.end, 0)
		p.closeLogs()
		p.disk.dead.Store(true)
		h.mu.Lock()
		defer h.mu.Unlock()
		h.now, h.mem = nil, h.mem.CrashClone(
			vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
	})
}

// over reports whether the process has ended.
func (p *process) over() bool {
	select {
	case <-p.dead:
		return true
	default:
		return false
	}
}
