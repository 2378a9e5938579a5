package service

import (
	"cmp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/server/resp"
)

const (
	// recentKept is how many denials the page shows: what fits a look.
	recentKept = 20
	// recentPerSecond bounds those taken note of: more than anybody reads, and at less
	// than a microsecond each nothing that deciding would feel.
	recentPerSecond = 100
	// recentWatch is how long after the last look they are taken note of: the page
	// looks once a second.
	recentWatch = 10 * time.Second
	// RecentKeyBytes is how much of a key is shown.
	RecentKeyBytes = 128
)

// RecentDenials remembers what was denied last, while somebody looks. While nobody
// does, a denial costs a load.
type RecentDenials struct {
	watched atomic.Bool

	mu       sync.Mutex
	lookedAt time.Time
	second   int64 // of which noted counts
	noted    int
	ring     [recentKept]Denial
	next     int
}

// Denial is one request that was denied.
type Denial struct {
	AtMs    int64  `json:"at_ms"` // Unix; 0: none
	Key     string `json:"key"`
	By      string `json:"by"`             // the policy, or the algorithm
	RetryMs int64  `json:"retry_after_ms"` // -1: no wait helps
}

// Note takes note of a denial.
func (r *RecentDenials) Note(op *engine.Op, d *engine.Decision) {
	if !r.watched.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if now.Sub(r.lookedAt) > recentWatch {
		r.watched.Store(false)
		return
	}
	if second := now.Unix(); second != r.second {
		r.second, r.noted = second, 0
	}
	if r.noted++; r.noted > recentPerSecond {
		return
	}
	policy, a, key := deniedBy(op, d)
	by := cmp.Or(string(policy), a.String())
	r.ring[r.next] = Denial{now.UnixMilli(), resp.Printable(key, RecentKeyBytes), by, d.RetryMs}
	r.next = (r.next + 1) % recentKept
}

// Look returns the denials taken note of, newest first, and has more of them taken
// note of for a while.
func (r *RecentDenials) Look() []Denial {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lookedAt = time.Now()
	r.watched.Store(true)
	found := []Denial{}
	for i := range recentKept {
		if d := r.ring[(r.next+recentKept-1-i)%recentKept]; d.AtMs != 0 {
			found = append(found, d)
		}
	}
	return found
}
