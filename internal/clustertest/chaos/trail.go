package chaos

import (
	"fmt"
	"sync"
)

// Trail is the history of one key. Safe for use by several goroutines.
type Trail struct {
	Key string
	Max int64 // units of its limit, where it never refills

	mu      sync.Mutex
	ops     []Op
	stale   []StaleRead
	begun   int
	unknown int
}

// add takes an operation that is over. One that was certainly not applied is no
// part of a history.
func (t *Trail) add(op Op) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if op.Outcome == NotApplied || op.Outcome == Refused {
		return
	}
	if op.Outcome == Unknown {
		t.unknown++
	}
	t.ops = append(t.ops, op)
}

func (t *Trail) addStale(r StaleRead) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stale = append(t.stale, r)
}

// StaleReads are the reads under READONLY so far.
func (t *Trail) StaleReads() []StaleRead {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]StaleRead(nil), t.stale...)
}

// Ops is the history so far.
func (t *Trail) Ops() []Op {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]Op(nil), t.ops...)
}

const (
	// maxTrailOps and maxTrailUnknown close a key for which a porcupine search is
	// needed: 2000 operations with 5 unknown ones take it 24 ms, with 20 a second,
	// with 100 more than anyone waits.
	maxTrailOps     = 1500
	maxTrailUnknown = 8
)

// begin says whether the key takes another operation.
func (t *Trail) begin() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begun++
	return t.begun <= maxTrailOps && t.unknown < maxTrailUnknown
}

// Ring hands the clients of one kind of traffic the key they share, and a new one
// when that is full. Safe for use by several goroutines.
type Ring struct {
	Prefix string
	Max    int64

	mu     sync.Mutex
	trails []*Trail
}

// next is the key for the next operation.
func (r *Ring) next() *Trail {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.trails); n > 0 && r.trails[n-1].begin() {
		return r.trails[n-1]
	}
	t := &Trail{Key: fmt.Sprintf("%s:%d", r.Prefix, len(r.trails)), Max: r.Max, begun: 1}
	r.trails = append(r.trails, t)
	return t
}

// latest is the key of the last operation, nil before the first.
func (r *Ring) latest() *Trail {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.trails) == 0 {
		return nil
	}
	return r.trails[len(r.trails)-1]
}

// Trails are all keys there have been.
func (r *Ring) Trails() []*Trail {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]*Trail(nil), r.trails...)
}
