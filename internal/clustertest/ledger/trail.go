package ledger

import (
	"sync"
)

// Trail is a history that is still being recorded: the operations of clients on one set of keys. It is safe for use by
// several goroutines.
type Trail struct {
	Name    string
	Max     int64 // of the counter with this name, if the trail is of a counter
	founded []Op
	most    int // operations that it accepts; 0: any number

	mu      sync.Mutex
	ops     []Op
	stale   []StaleRead
	holds   []Op // the requested holds
	begun   int
	unknown int
	// extended is the number of the last extension of each hold that was answered.
	extended map[string]int64
	setting  bool // a policy change is under way, or its outcome is unknown
}

const (
	// maxOps, maxCounterOps and maxUnknown bound a trail, so that the search for a linearization ends. In the history
	// of a counter it takes a second with 20 unknown operations, and practically for ever with 100.
	maxOps        = 500
	maxCounterOps = 1500
	maxUnknown    = 8
)

// Op returns an operation on the counter.
func (t *Trail) Op(verb Verb, units int64) Op {
	return Op{Verb: verb, Pairs: []Pair{{Key: t.Name}}, Max: t.Max, Units: units}
}

// Add adds a finished operation.
func (t *Trail) Add(op Op) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if op.Unknown {
		t.unknown++
	} else if op.Verb == Extend && op.Answer.Allowed == 1 {
		t.extended[op.ID] = max(t.extended[op.ID], op.Seq)
	}
	t.ops = append(t.ops, op)
}

// AddStale adds a stale read of the counter.
func (t *Trail) AddStale(r StaleRead) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stale = append(t.stale, r)
}

// StaleReads returns the stale reads so far.
func (t *Trail) StaleReads() []StaleRead {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]StaleRead(nil), t.stale...)
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
	return t.most == 0 || t.begun <= t.most && t.unknown < maxUnknown
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
	t := r.Traffic.trail(len(r.trails))
	r.trails = append(r.trails, t)
	return t
}

// Latest returns the trail of the last operation, or nil before the first.
func (r *Ring) Latest() *Trail {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.trails) == 0 {
		return nil
	}
	return r.trails[len(r.trails)-1]
}

// Trails returns all trails so far.
func (r *Ring) Trails() []*Trail {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]*Trail(nil), r.trails...)
}
