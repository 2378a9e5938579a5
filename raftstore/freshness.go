package raftstore

import (
	"sync"
	"time"
)

// freshness knows since when this node's state has been the newest acknowledged one at
// the latest: the time, on this node's monotonic clock, before a ReadIndex question whose
// index has been applied since.
type freshness struct {
	mu      sync.Mutex
	at      time.Time // zero: never since the start
	pending struct {  // the oldest question whose index has not been applied
		at    time.Time
		index uint64
	}
}

// saw takes note of an index that covers all that was acknowledged at a time, and of the
// last entry applied.
func (f *freshness) saw(at time.Time, index, applied uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch f.resolve(applied); {
	case applied >= index:
		f.advance(at)
	case f.pending.index == 0:
		f.pending.at, f.pending.index = at, index
	}
}

// since returns the time, given the last entry applied.
func (f *freshness) since(applied uint64) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.resolve(applied)
	return f.at
}

// resolve ends the wait of the pending question if its index has been applied. The caller
// holds mu.
func (f *freshness) resolve(applied uint64) {
	if f.pending.index != 0 && applied >= f.pending.index {
		f.advance(f.pending.at)
		f.pending.index = 0
	}
}

func (f *freshness) advance(at time.Time) {
	if at.After(f.at) {
		f.at = at
	}
}

// UnknownAge is what StaleFor returns while the age is not known: more than any state's.
const UnknownAge = 100 * 365 * 24 * time.Hour

// StaleFor is at least how old the state is that this node reads: the time since the
// last moment for which it is known that everything acknowledged then has been applied.
// Until there was one since the start, it is UnknownAge: only the wall clock could tell how
// long this node was down, and it may have been set.
func (n *Node) StaleFor() time.Duration {
	if n.faults.FreshByContact {
		return time.Since(n.raft.LastContact())
	}
	index, _ := n.machine.check()
	since := n.freshness.since(index)
	if since.IsZero() {
		return UnknownAge
	}
	return time.Since(since)
}
