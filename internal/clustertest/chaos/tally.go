package chaos

import (
	"maps"
	"sync"
	"time"

	"github.com/weir-project/weir/internal/clustertest/ledger"
)

// Tally counts the outcomes of all clients. It is safe for use by several goroutines.
type Tally struct {
	mu              sync.Mutex
	words           map[string]int64 // by error word, or wordAnswered
	outcomes        [Refused + 1]int64
	allowed, denied int64
	seconds         []Second
	lastAnswerNs    int64
	longestGapNs    int64
	slowestGrantNs  int64
}

// count adds the outcome of one command.
func (t *Tally) count(o Outcome, word string, atNs int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.words == nil {
		t.words = map[string]int64{}
	}
	t.words[word]++
	t.outcomes[o]++
	if o != Answered {
		return
	}
	t.second(atNs).Decisions++
	if atNs > t.lastAnswerNs {
		t.longestGapNs = max(t.longestGapNs, atNs-t.lastAnswerNs)
		t.lastAnswerNs = atNs
	}
}

// decided adds the answer of one decision and its number of attempts. demand means that the key always has clients that
// want more.
func (t *Tally) decided(op *ledger.Op, tries int, demand bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if op.Granted() == 0 {
		t.denied++
		return
	}
	t.allowed++
	if tries == 1 {
		t.slowestGrantNs = max(t.slowestGrantNs, op.ReturnNs-op.CallNs)
	}
	if demand {
		t.second(op.ReturnNs).Admitted += op.Granted()
	}
}

// second returns the record of the second that contains atNs. The caller holds mu.
func (t *Tally) second(atNs int64) *Second {
	i := int(atNs / int64(time.Second))
	for len(t.seconds) <= i {
		t.seconds = append(t.seconds, Second{})
	}
	return &t.seconds[i]
}

// Totals are the numbers of a run.
type Totals struct {
	Answered, NotApplied, Unknown, Refused int64
	Allowed, Denied                        int64
	Words                                  map[string]int64
	LongestGap, SlowestGrant               time.Duration
}

func (t *Tally) totals() Totals {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Totals{
		Answered: t.outcomes[Answered], NotApplied: t.outcomes[NotApplied], Unknown: t.outcomes[Unknown],
		Refused: t.outcomes[Refused],
		Allowed: t.allowed, Denied: t.denied, Words: maps.Clone(t.words),
		LongestGap: time.Duration(t.longestGapNs), SlowestGrant: time.Duration(t.slowestGrantNs),
	}
}

// finished returns the whole seconds of a run of this length.
func (t *Tally) finished(run time.Duration) []Second {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]Second, int(run/time.Second))
	copy(out, t.seconds)
	return out
}
