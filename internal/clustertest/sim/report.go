package sim

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/weir-project/weir/internal/clustertest/ledger"
)

// Report is the result of one or several simulations.
type Report struct {
	mu         sync.Mutex
	Seeds      int
	Faults     map[string]int // by kind
	Fatals     map[string]int // processes that stopped themselves, by reason
	Guards     map[string]int // refusals against rare races, by guard
	Decisions  int            // acknowledged
	Refused    int            // certainly not applied
	Unknown    int
	Reads      int // answered
	StaleReads int // of these
	Comparison int // of the states of two nodes at one entry
	// SharedCompared counts comparisons of the shared items of groups, and SharedAnswers requests to all groups that
	// followed an answered change.
	SharedCompared, SharedAnswers int
	Budgets                       map[string]int // alternatives, extensions, reports and thresholds
	Moves                         map[string]int // of replicas, by their ends; and the faults during moves, by step
	Leaks                         int            // processes that could not be closed
	Recovery                      time.Duration
	Violations                    []string
	Trace                         []string // events, in order
	later                         []func() error
}

// NewReport returns an empty report for one run.
func NewReport() *Report {
	return &Report{Seeds: 1, Faults: map[string]int{}, Fatals: map[string]int{}, Guards: map[string]int{},
		Budgets: map[string]int{}, Moves: map[string]int{}}
}

// Judge runs the checks that cannot run in the bubble.
func (r *Report) Judge() {
	for _, judge := range r.later {
		if err := judge(); err != nil {
			r.Violations = append(r.Violations, err.Error())
		}
	}
	r.later = nil
}

// tally counts an operation.
func (r *Report) tally(o outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*[...]*int{acked: &r.Decisions, refused: &r.Refused, unknown: &r.Unknown}[o]++
}

func (r *Report) read(stale bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.Reads++; stale {
		r.StaleReads++
	}
}

func (r *Report) answeredEverywhere() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.SharedAnswers++
}

func (r *Report) fault(kind string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Faults[kind]++
}

func (r *Report) fatal(reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Fatals[reason]++
}

func (r *Report) leak() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Leaks++
}

// moved counts a move that an operator has left, and the fault that hit it.
func (r *Report) moved(m lastMove, i interruption, hit bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case m.done:
		r.Moves["done"]++
	case m.begun:
		r.Moves["left unfinished"]++
	default:
		r.Moves["refused"]++
	}
	if hit {
		r.Moves[i.victim+" / "+i.step]++
	}
}

// finished counts a move that was repeated in the end.
func (r *Report) finished() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Moves["finished in the end"]++
}

// Add adds another report's numbers.
func (r *Report) Add(o *Report) {
	if r.Faults == nil {
		n := NewReport()
		r.Faults, r.Fatals, r.Guards, r.Budgets, r.Moves = n.Faults, n.Fatals, n.Guards, n.Budgets, n.Moves
	}
	r.Seeds += o.Seeds
	r.Decisions += o.Decisions
	r.Refused += o.Refused
	r.Unknown += o.Unknown
	r.Reads += o.Reads
	r.StaleReads += o.StaleReads
	r.Comparison += o.Comparison
	r.SharedCompared += o.SharedCompared
	r.SharedAnswers += o.SharedAnswers
	r.Leaks += o.Leaks
	r.Recovery = max(r.Recovery, o.Recovery)
	r.Violations = append(r.Violations, o.Violations...)
	for k, n := range o.Faults {
		r.Faults[k] += n
	}
	for k, n := range o.Fatals {
		r.Fatals[k] += n
	}
	for k, n := range o.Budgets {
		r.Budgets[k] += n
	}
	for k, n := range o.Moves {
		r.Moves[k] += n
	}
	for k, n := range o.Guards {
		r.Guards[k] += n
	}
}

// Story returns the events, in order.
func (r *Report) Story() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.Trace, "\n")
}

// String formats the report for reading.
func (r *Report) String() string {
	return fmt.Sprintf("%d seeds, %d decisions, %d refused, %d unknown, %d reads, %d of them stale, %d state "+
		"comparisons, slowest recovery %v, %d not closed, %d violations\nbudgets: %s\nmoves: %s\nfaults: %s\n"+
		"stopped themselves: %s\n%s",
		r.Seeds, r.Decisions, r.Refused, r.Unknown, r.Reads, r.StaleReads, r.Comparison, r.Recovery, r.Leaks,
		len(r.Violations), ledger.Counts(r.Budgets), ledger.Counts(r.Moves),
		ledger.Counts(r.Faults), ledger.Counts(r.Fatals), r.guards())
}
