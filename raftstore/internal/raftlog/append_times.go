package raftlog

import (
	"slices"
	"sync"
	"time"
)

// RecentAppends is how many appends the median is of: one slow append does not move
// it, and five show that a disk has become slow.
const RecentAppends = 9

// Times are how long the last appends took. The zero value is ready.
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

// Median returns 0 until there have been recentAppends appends.
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
