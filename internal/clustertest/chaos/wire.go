package chaos

import (
	"math/rand/v2"
	"sync"
	"time"
)

// Wire is one direction between two nodes: what a sends to b, on whichever
// connection, whoever opened it. A cut wire holds what is sent into it and
// delivers it late when it is healed, as TCP does across a partition. Safe for
// use by several goroutines.
type Wire struct {
	mu            sync.Mutex
	opened        chan struct{} // closed when the wire is open; nil: it is
	delay, jitter time.Duration
}

// Cut holds everything from now on.
func (w *Wire) Cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.opened == nil {
		w.opened = make(chan struct{})
	}
}

// Heal lets through what was held, and what follows.
func (w *Wire) Heal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.opened != nil {
		close(w.opened)
		w.opened = nil
	}
}

// Slow makes every byte take delay, and up to jitter more; 0, 0 for full speed.
func (w *Wire) Slow(delay, jitter time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.delay, w.jitter = delay, jitter
}

// await returns when the wire is open, or false when done is closed first.
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

// travelTime is how long bytes that are sent now take. The jitter is not of the
// schedule's seed: how many chunks there are is not either.
func (w *Wire) travelTime() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.jitter <= 0 {
		return w.delay
	}
	return w.delay + rand.N(w.jitter)
}
