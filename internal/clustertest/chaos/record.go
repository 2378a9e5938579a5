package chaos

import (
	"errors"
	"fmt"
)

var (
	// ErrNotOnce reports that a command with an ID was applied twice.
	ErrNotOnce = errors.New("repeated with its ID and answered otherwise")
	// ErrBadReply reports a reply that the command does not have.
	ErrBadReply = errors.New("unexpected reply")
)

// record completes an operation with its answer, and adds it to the history of its key. demand means that the key's
// clients always want more.
func (w *Workload) record(t *Trail, op Op, a Answer, demand bool) {
	op.CallNs, op.ReturnNs, op.Outcome = a.CallNs, a.ReturnNs, a.Outcome
	if a.Outcome == Refused || a.Outcome == Answered && !op.understand(a.Reply) {
		w.Violations.Add(t.Key, fmt.Errorf("%w: %s of %d: %v", ErrBadReply, op.Verb, op.Units, a.Reply))
		return
	}
	if op.Verb == Take && op.Outcome == Answered && op.Units > 0 {
		w.Tally.decided(&op, a.Tries, demand)
	}
	if a.Tries > 1 && op.Verb == Take && op.Outcome == Answered && op.Granted == 0 {
		op.Outcome = Unknown // units may have come free before a delayed attempt arrives
	}
	t.add(op)
}

// understand takes the numbers from a reply: the five integers of a decision, or the integer of REFUND and RESET.
func (o *Op) understand(reply any) bool {
	if o.Verb != Take {
		left, ok := reply.(int64)
		o.Left = left
		return ok
	}
	a := Answer{Reply: reply}
	figures := a.ints()
	if len(figures) != 5 {
		return false
	}
	allowed := figures[0]
	o.Left = figures[1]
	switch {
	case allowed < 0 || !o.Partial && allowed > 1 || o.Partial && allowed > max(o.Units, 1):
		return false
	case o.Units == 0:
		o.Granted = 0 // a dry run
	case o.Partial:
		o.Granted = allowed
	default:
		o.Granted = allowed * o.Units
	}
	return true
}
