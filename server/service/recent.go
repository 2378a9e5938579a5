package service

import (
	"cmp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/quote"
)

const (
	// recentKept is the number of denials that the page shows.
	recentKept = 20
	// recentPerSecond bounds the recorded denials per second. It is more than a person reads. At less than a
	// microsecond each, records do not slow decisions.
	recentPerSecond = 100
	// recentWatch is the time after the last Look for which denials are recorded. The page calls Look once a second.
	recentWatch = 10 * time.Second
	// RecentKeyBytes is the number of bytes shown of a key.
	RecentKeyBytes = 128
)

// RecentDenials records the last denials while a page is open. Otherwise a denial costs one atomic load.
type RecentDenials struct {
	watched atomic.Bool

	mu       sync.Mutex
	lookedAt time.Time
	second   int64 // the second that noted counts
	noted    int
	ring     [recentKept]Denial
	next     int
}

// Denial is one denied request.
type Denial struct {
	AtMs    int64  `json:"at_ms"` // Unix; 0: none
	Key     string `json:"key"`
	By      string `json:"by"`             // the policy, the algorithm, or ByBlock
	RetryMs int64  `json:"retry_after_ms"` // -1: no wait helps
}

// ByBlock is what denied a key that RL.BLOCK blocks. No policy has such a name.
const ByBlock = "RL.BLOCK (blocked)"

// Note records a denial.
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
	if d.Part == engine.NoPart { // of a denial, only a block has no part
		by = ByBlock
	}
	r.ring[r.next] = Denial{now.UnixMilli(), quote.Printable(key, RecentKeyBytes), by, d.RetryMs}
	r.next = (r.next + 1) % recentKept
}

// Look returns the recorded denials, newest first, and keeps recording enabled for recentWatch.
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
