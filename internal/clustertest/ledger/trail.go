package ledger

import (
	"fmt"
	"sync"
)

// Trail is a history while it is written: what clients do to one set of keys. Safe for
// use by several goroutines.
type Trail struct {
	Name    string
	founded []Op

	mu      sync.Mutex
	ops     []Op
	holds   []Op // that were asked for
	begun   int
	unknown int
}

const (
	// maxOps and maxUnknown end a trail: what the search can be asked to explain.
	maxOps     = 500
	maxUnknown = 8
)

// Add takes an operation that is over.
func (t *Trail) Add(op Op) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if op.Unknown {
		t.unknown++
	}
	t.ops = append(t.ops, op)
}

// Ops is the history so far, behind the policies it was founded on.
func (t *Trail) Ops() []Op {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append(append([]Op(nil), t.founded...), t.ops...)
}

// begin says whether the trail takes another operation.
func (t *Trail) begin() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begun++
	return t.begun <= maxOps && t.unknown < maxUnknown
}

// String is the whole history for people.
func (t *Trail) String() string {
	out := t.Name + "\n"
	for _, op := range t.Ops() {
		out += op.String() + "\n"
	}
	return out
}

// Ring hands clients the trail they share, and a new one when that is full. Safe for use
// by several goroutines.
type Ring struct {
	Traffic *Traffic

	mu     sync.Mutex
	trails []*Trail
}

// Next is the trail for the next operation.
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

// Trails are all there have been.
func (r *Ring) Trails() []*Trail {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]*Trail(nil), r.trails...)
}
