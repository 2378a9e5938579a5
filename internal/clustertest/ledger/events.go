package ledger

import (
	"errors"
	"fmt"
	"slices"
	"sync"
)

var (
	// ErrEventsDiffer reports that readers saw different events under one cursor, or a gap between cursors.
	ErrEventsDiffer = errors.New("readers of events disagree")
	// ErrNotTold reports an event that is missing.
	ErrNotTold = errors.New("an event is missing")
	// ErrToldAgain reports an event that was written twice.
	ErrToldAgain = errors.New("an event was written twice")
	// ErrToldFalsely reports an event that no operation explains.
	ErrToldFalsely = errors.New("no operation explains an event")
)

// The kinds of events that [Told] judges. It ignores others.
const (
	ThresholdEvent = "threshold"
	SettledEvent   = "settled"
)

// Event is an event as a reader saw it.
type Event struct {
	Cursor      uint64
	AtMs        int64
	Kind        string
	Pair        Pair
	ID          string
	Share       int64 // the threshold, in percent
	Amount      int64
	Used, Limit int64
}

// EventLog is what all readers saw of one log of events. It is safe for use by several goroutines.
type EventLog struct {
	mu   sync.Mutex
	seen map[uint64]Event // by cursor
	last uint64           // the greatest cursor
}

// Add adds events that a reader got after a cursor. Their cursors must follow it without a gap, and every reader must
// see the same event under a cursor.
func (l *EventLog) Add(reader string, after uint64, list []Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen == nil {
		l.seen = map[uint64]Event{}
	}
	for _, e := range list {
		if after++; e.Cursor != after {
			return fmt.Errorf("%w: after cursor %d %s has %+v", ErrEventsDiffer, after-1, reader, e)
		}
		if was, ok := l.seen[e.Cursor]; ok && was != e {
			return fmt.Errorf("%w: %s has %+v, another %+v", ErrEventsDiffer, reader, e, was)
		}
		l.seen[e.Cursor] = e
		l.last = max(l.last, e.Cursor)
	}
	return nil
}

// Last returns the greatest cursor that a reader saw.
func (l *EventLog) Last() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// Events returns all events in their order. An event that no reader saw is an error.
func (l *EventLog) Events() (list []Event, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for cursor := uint64(1); cursor <= l.last; cursor++ {
		e, ok := l.seen[cursor]
		if !ok {
			return nil, fmt.Errorf("%w: nobody saw cursor %d of %d", ErrEventsDiffer, cursor, l.last)
		}
		list = append(list, e)
	}
	return list, nil
}

// Notify describes the limit of a policy with thresholds.
type Notify struct {
	Max    int64
	Shares []int64 // in percent, ascending
	// Ends: the limit has windows that end. Else it counts forever.
	Ends bool
	// Returns: units come back within the window, so the usage before an operation does not follow from its answer.
	Returns bool
}

// reached reports whether used units reach a share.
func (n *Notify) reached(used, share int64) bool { return used*100 >= n.Max*share }

// Taking is an operation on a limit with thresholds.
type Taking struct {
	Pair  Pair
	ID    string // the idempotency key, or the hold; empty: none
	Units int64  // that it took, 0 for a read, or at most so many if Unknown
	Used  int64  // of the limit after the operation
	// Unknown: it may have taken the units, and Used is not known.
	Unknown bool
}

// Settling is the end of a hold under a policy that records it, or with Unknown perhaps.
type Settling struct {
	Pair    Pair
	ID      string
	Cost    int64
	Unknown bool
}

// Tally counts what Told has judged.
type Tally struct{ Thresholds, Settled, Missing, Twice, False int }

// told names an event that may exist once.
type told struct {
	pair  Pair
	id    string
	share int64
}

// Told compares the events of a log with the operations that its policies counted:
//
//   - a threshold of a limit is told once in a window, by the operation with which the usage reached it;
//   - each taking that certainly reached a threshold first has its event, and each threshold below a usage that an
//     answer shows has one;
//   - an event has the units and the usage of an operation that took units, or may have taken them;
//   - a hold that was settled has one event, with its cost.
func Told(terms map[string]Notify, takings []Taking, settlings []Settling, events []Event) (n Tally, err error) {
	j := &tellJudge{terms: terms, byID: map[told][]Taking{}, seen: map[told]int{}, settled: map[told]int64{}}
	for _, t := range takings {
		id := told{t.Pair, t.ID, 0}
		j.byID[id] = append(j.byID[id], t)
	}
	for i := range events {
		j.event(&events[i])
	}
	for _, t := range takings {
		j.taking(t)
	}
	for _, s := range settlings {
		j.settling(s)
	}
	for id := range j.settled {
		j.fail(&j.n.False, ErrToldFalsely, "the end of %v, which nobody settled", id)
	}
	return j.n, errors.Join(j.errs...)
}

type tellJudge struct {
	terms   map[string]Notify
	byID    map[told][]Taking
	seen    map[told]int   // events, by the share in a window
	settled map[told]int64 // costs of the ends that no Settling has explained yet
	n       Tally
	errs    []error
}

// maxTellErrors bounds the errors that Told joins. Tally counts all.
const maxTellErrors = 20

func (j *tellJudge) fail(count *int, err error, format string, args ...any) {
	if *count++; len(j.errs) < maxTellErrors {
		j.errs = append(j.errs, fmt.Errorf("%w: %s", err, fmt.Sprintf(format, args...)))
	}
}

// idOf returns the name of a threshold of a pair. In a limit with windows the operation stands for its window.
func (j *tellJudge) idOf(pair Pair, id string, share int64) told {
	if !j.terms[pair.Policy].Ends {
		id = ""
	}
	return told{pair, id, share}
}

func (j *tellJudge) event(e *Event) {
	terms, known := j.terms[e.Pair.Policy]
	switch {
	case e.Kind == SettledEvent:
		id := told{e.Pair, e.ID, 0}
		if _, again := j.settled[id]; again {
			j.fail(&j.n.Twice, ErrToldAgain, "%+v", *e)
		}
		j.settled[id] = e.Amount
		j.n.Settled++
		return
	case e.Kind != ThresholdEvent:
		return
	}
	j.n.Thresholds++
	id := j.idOf(e.Pair, e.ID, e.Share)
	if j.seen[id]++; j.seen[id] > 1 {
		j.fail(&j.n.Twice, ErrToldAgain, "%+v", *e)
	}
	before := e.Used - e.Amount
	explains := func(t Taking) bool {
		if t.Unknown {
			return 0 < e.Amount && e.Amount <= t.Units
		}
		return t.Units == e.Amount && t.Used == e.Used
	}
	switch {
	case !known, !slices.Contains(terms.Shares, e.Share), e.Limit != terms.Max, !terms.reached(e.Used, e.Share),
		before < 0, !terms.Returns && terms.reached(before, e.Share),
		!slices.ContainsFunc(j.byID[told{e.Pair, e.ID, 0}], explains):
		j.fail(&j.n.False, ErrToldFalsely, "%+v; the operations of this ID: %+v", *e,
			j.byID[told{e.Pair, e.ID, 0}])
	}
}

// taking checks that the thresholds which an operation reached have events.
func (j *tellJudge) taking(t Taking) {
	terms := j.terms[t.Pair.Policy]
	for _, share := range terms.Shares {
		switch {
		case t.Unknown, !terms.reached(t.Used, share):
		case terms.Ends && terms.reached(t.Used-t.Units, share): // another operation told it
		case j.seen[j.idOf(t.Pair, t.ID, share)] == 0:
			j.fail(&j.n.Missing, ErrNotTold, "%d%% of %+v", share, t)
		}
	}
}

func (j *tellJudge) settling(s Settling) {
	id := told{s.Pair, s.ID, 0}
	cost, ended := j.settled[id]
	switch {
	case !ended && !s.Unknown:
		j.fail(&j.n.Missing, ErrNotTold, "the end of %+v", s)
	case ended && cost != s.Cost:
		j.fail(&j.n.False, ErrToldFalsely, "%+v ended with %d", s, cost)
	}
	delete(j.settled, id)
}

// Thresholds returns the limits of the policies that have thresholds.
func (t *Traffic) Thresholds() map[string]Notify {
	terms := map[string]Notify{}
	for _, p := range t.Policies {
		if t.Grows && len(p.Notify) > 0 {
			terms[p.Policy] = Notify{Max: p.Max, Shares: p.Notify, Returns: true}
		}
	}
	return terms
}

// TakingsOf returns what a history of policies that never refill says of their usage: what each operation may have
// taken from its pairs, and the usage that the answers to checks show.
func TakingsOf(ops []Op) (list []Taking) {
	pairs := map[string][]Pair{} // by hold
	for _, op := range ops {
		if op.Verb == Reserve {
			pairs[op.ID] = op.Pairs
		}
	}
	for _, op := range ops {
		if op.Verb == Extend || op.Verb == Commit {
			op.Pairs = pairs[op.ID]
		}
		if op.Verb == Set || op.Verb == Cancel {
			continue
		}
		for _, pair := range op.Pairs {
			list = append(list, Taking{Pair: pair, ID: op.ID, Units: op.Units, Unknown: true})
			if op.Verb == Check && !op.Unknown && pair.Policy == op.Answer.Policy {
				list = append(list, Taking{Pair: pair, Used: op.Answer.Limit - op.Answer.Left})
			}
		}
	}
	return list
}
