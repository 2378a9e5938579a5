package chaos

import (
	"fmt"
	"sync"
)

// Trail is the history of one key. It is safe for use by several goroutines.
type Trail struct {
	Key string
	Max int64 // units of its limit, if it never refills

	mu      sync.Mutex
	ops     []Op
	stale   []StaleRead
	begun   int
	unknown int
}

// add adds a finished operation. It omits an operation that was certainly not applied.
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

// StaleReads returns the reads under READONLY so far.
func (t *Trail) StaleReads() []StaleRead {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]StaleRead(nil), t.stale...)
}

// Ops returns the history so far.
func (t *Trail) Ops() []Op {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]Op(nil), t.ops...)
}

const (
	// maxTrailOps and maxTrailUnknown bound a key whose history porcupine searches. A search takes 24 ms for 2000
	// operations with 5 unknown ones, a second with 20 unknown ones, and practically for ever with 100.
	maxTrailOps     = 1500
	maxTrailUnknown = 8
)

// begin reports whether the key accepts another operation.
func (t *Trail) begin() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begun++
	return t.begun <= maxTrailOps && t.unknown < maxTrailUnknown
}

// Ring gives the clients of one kind of traffic a shared key, and a new key when that one is full. It is safe for use
// by several goroutines.
type Ring struct {
	Prefix string
	Max    int64

	mu     sync.Mutex
	trails []*Trail
}

// next returns the key for the next operation.
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

// latest returns the key of the last operation, or nil before the first.
func (r *Ring) latest() *Trail {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.trails) == 0 {
		return nil
	}
	return r.trails[len(r.trails)-1]
}

// Trails returns all keys so far.
func (r *Ring) Trails() []*Trail {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]*Trail(nil), r.trails...)
}
