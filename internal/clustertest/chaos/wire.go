package chaos

import (
	"math/rand/v2"
	"sync"
	"time"
)

// Wire is one direction between two nodes: the bytes from a to b, on any connection, whichever node opened it. A cut
// wire holds these bytes and delivers them after it heals, as TCP does across a partition. It is safe for use by
// several goroutines.
type Wire struct {
	mu            sync.Mutex
	opened        chan struct{} // closed when the wire opens; nil: open
	delay, jitter time.Duration
}

// Cut holds all bytes from now on.
func (w *Wire) Cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.opened == nil {
		w.opened = make(chan struct{})
	}
}

// Heal delivers the held bytes and all later ones.
func (w *Wire) Heal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.opened != nil {
		close(w.opened)
		w.opened = nil
	}
}

// Slow delays every byte by delay plus a random time up to jitter. 0, 0 means full speed.
func (w *Wire) Slow(delay, jitter time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.delay, w.jitter = delay, jitter
}

// await returns when the wire is open. It returns false if done is closed first.
func (w *Wire) await(done <-chan struct{}) bool {
	for {
		w.mu.Lock()
		opened := w.opened
		w.mu.Unlock()
		if opened == nil {
			return true
		}
		select {
		case <-opened:
		case <-done:
			return false
		}
	}
}

// travelTime returns how long bytes sent now take. The jitter does not use the schedule's seed, because the number of
// chunks is not deterministic either.
func (w *Wire) travelTime() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.jitter <= 0 {
		return w.delay
	}
	return w.delay + rand.N(w.jitter)
}
