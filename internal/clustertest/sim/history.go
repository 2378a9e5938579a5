package sim

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/faults"
	"github.com/weir-project/weir/limiter"
)

// outcome is a client's knowledge of an operation.
type outcome uint8

const (
	acked   outcome = iota // applied; the answer is known
	refused                // certainly not applied
	unknown                // possibly applied
)

// outcomeOf returns the outcome that an error of Decide means.
func outcomeOf(err error) outcome {
	switch {
	case err == nil:
		return acked
	case errors.Is(err, limiter.ErrTryAgain), errors.Is(err, limiter.ErrClusterDown),
		errors.Is(err, limiter.ErrOverloaded):
		return refused
	}
	return unknown
}

// misroutes reports whether a mistake sends operations to the wrong group.
func misroutes(mistakes faults.Set) bool { return mistakes.Has(faults.StaleMap) }

// record is one operation as its client saw it, in true time since the start.
type record struct {
	op           engine.Op
	key, id      string
	called, back time.Duration
	outcome      outcome
	answer       engine.Decision // if acked
}

// taken returns the units that an acknowledged operation took.
func (r *record) taken() int64 {
	if r.op.Code == engine.OpTake && r.outcome == acked && r.answer.Allowed == 1 {
		return r.op.Cost
	}
	return 0
}

// used returns the units of the limit in use after an acknowledged take.
func (r *record) used() int64 { return r.answer.Limit - r.answer.Remaining }

// history is the record of all clients.
type history struct {
	mu      sync.Mutex
	records []record
	booked  [unknown + 1]int // operations of the books, by outcome
	reads   map[string][]read
}

// tally counts an operation of the books.
func (h *history) tally(o outcome) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.booked[o]++
}

func (h *history) add(rs []record) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.records = append(h.records, rs...)
}

func (h *history) addRead(key string, r read) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.reads == nil {
		h.reads = map[string][]read{}
	}
	h.reads[key] = append(h.reads[key], r)
}

// readsOf returns the reads of a key.
func (h *history) readsOf(key string) []read {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.reads[key])
}

// countReads returns the number of reads, and how many of them were stale.
func (h *history) countReads() (all, stale int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, reads := range h.reads {
		for _, r := range reads {
			all++
			if r.stale {
				stale++
			}
		}
	}
	return all, stale
}

// byKey groups the records of the keys with a prefix.
func (h *history) byKey(prefix byte) map[string][]record {
	h.mu.Lock()
	defer h.mu.Unlock()
	keys := map[string][]record{}
	for _, r := range h.records {
		if r.key[0] == prefix {
			keys[r.key] = append(keys[r.key], r)
		}
	}
	return keys
}

// count returns how many records have an outcome.
func (h *history) count(o outcome) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n = h.booked[o]
	for i := range h.records {
		if h.records[i].outcome == o {
			n++
		}
	}
	return n
}
