package ledger

import (
	"fmt"
	"sync"
)

// Trail is a history that is still being recorded: the operations of clients on one set of keys. It is safe for use by
// several goroutines.
type Trail struct {
	Name    string
	founded []Op

	mu      sync.Mutex
	ops     []Op
	holds   []Op // the requested holds
	begun   int
	unknown int
	setting bool // a policy change is under way, or its outcome is unknown
}

const (
	// maxOps and maxUnknown bound a trail, so that the search for a linearization ends.
	maxOps     = 500
	maxUnknown = 8
)

// Add adds a finished operation.
func (t *Trail) Add(op Op) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if op.Unknown {
		t.unknown++
	}
	t.ops = append(t.ops, op)
}

// set begins a policy change. It returns false if another one is under way, or if the outcome of one is unknown.
func (t *Trail) set() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	began := !t.setting
	t.setting = true
	return began
}

// Ended tells that an operation has ended, whether it was applied or not.
func (t *Trail) Ended(op Op) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if op.Verb == Set && !op.Unknown {
		t.setting = false
	}
}

// Ops returns the history so far, after the operations that created its policies.
func (t *Trail) Ops() []Op {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append(append([]Op(nil), t.founded...), t.ops...)
}

// begin reports whether the trail accepts another operation.
func (t *Trail) begin() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begun++
	return t.begun <= maxOps && t.unknown < maxUnknown
}

// String formats the whole history.
func (t *Trail) String() string {
	out := t.Name + "\n"
	for _, op := range t.Ops() {
		out += op.String() + "\n"
	}
	return out
}

// Ring gives clients a shared trail, and a new trail when that one is full. It is safe for use by several goroutines.
type Ring struct {
	Traffic *Traffic

	mu     sync.Mutex
	trails []*Trail
}

// Next returns the trail for the next operation.
func (r *Ring) Next() *Trail {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.trails); n > 0 && r.trails[n-1].begin() {
		return r.trails[n-1]
	}
	t := &Trail{Name: fmt.Sprintf("%s:%d", r.Traffic.Name, len(r.trails)), founded: r.Traffic.founding(), begun: 1}
	r.trails = append(r.trails, t)
	return t
}

// Trails returns all trails so far.
func (r *Ring) Trails() []*Trail {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]*Trail(nil), r.trails...)
}
