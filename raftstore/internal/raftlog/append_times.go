package raftlog

import (
	"slices"
	"sync"
	"time"
)

// RecentAppends is the number of appends for the median. One slow append does not change the median, and five show
// that a disk has become slow.
const RecentAppends = 9

// Times records the durations of the last appends. The zero value is ready.
type Times struct {
	mu   sync.Mutex
	last [RecentAppends]time.Duration
	n    int // appends so far
}

func (a *Times) Add(took time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last[a.n%RecentAppends] = took
	a.n++
}

// Median returns the median duration, or 0 before RecentAppends appends.
func (a *Times) Median() time.Duration {
	a.mu.Lock()
	last, n := a.last, a.n
	a.mu.Unlock()
	if n < RecentAppends {
		return 0
	}
	slices.Sort(last[:])
	return last[RecentAppends/2]
}
