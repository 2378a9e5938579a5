package readindex

import (
	"sync"
	"time"

	"github.com/weir-project/weir/internal/faults"
	"github.com/weir-project/weir/limiter"
)

// freshness records the latest moment M for which this node has provably applied everything that was acknowledged
// before M. At M this node sent a ReadIndex question, and it has applied the index of the answer since. M is on this
// node's monotonic clock.
type freshness struct {
	mu      sync.Mutex
	at      time.Time // the moment M; zero: none since the start
	pending struct {  // the oldest question whose index has not been applied
		at    time.Time
		index uint64
	}
}

// saw records that index covers everything acknowledged until at. applied is the last entry that this node has
// applied.
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

// since returns the moment M, or zero. applied is the last entry that this node has applied.
func (f *freshness) since(applied uint64) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.resolve(applied)
	return f.at
}

// Reset discards the moment M, because the state has been replaced.
func (f *freshness) Reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at, f.pending.index = time.Time{}, 0
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

// StaleFor implements Node.StaleFor.
func (rd *Reads) StaleFor() time.Duration {
	if rd.Faults.Has(faults.FreshByContact) {
		return time.Since(rd.Raft.LastContact())
	}
	index, _ := rd.FSM.LastHistory()
	since := rd.Freshness.since(index)
	if since.IsZero() {
		return limiter.UnknownAge
	}
	return time.Since(since)
}
