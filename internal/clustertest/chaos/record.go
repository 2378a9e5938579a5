package chaos

import (
	"errors"
	"fmt"

	"github.com/weir-project/weir/internal/clustertest/ledger"
)

var (
	// ErrNotOnce reports that a command with an ID was applied twice.
	ErrNotOnce = errors.New("repeated with its ID and answered otherwise")
	// ErrBadReply reports a reply that the command does not have.
	ErrBadReply = errors.New("unexpected reply")
)

// record completes an operation with its answer, and adds it to the history of its key. demand means that the key's
// clients always want more.
func (w *Workload) record(c *Client, t *ledger.Trail, op ledger.Op, a Answer, demand bool) {
	op.Client, op.CallNs, op.ReturnNs, op.Unknown = c.ID, a.CallNs, a.ReturnNs, a.Outcome == Unknown
	switch {
	case a.Outcome == NotApplied:
		return
	case a.Outcome == Refused || a.Outcome == Answered && !understand(&op, a):
		w.Violations.Add(t.Name, fmt.Errorf("%w: %s of %d: %v", ErrBadReply, op.Verb, op.Units, a.Reply))
		return
	case a.Outcome == Answered && op.Verb == ledger.Take && op.Units > 0:
		w.Tally.decided(&op, a.Tries, demand)
	}
	if a.Outcome == Answered && a.Tries > 1 {
		op.Doubt()
	}
	t.Add(op)
}

// understand takes the numbers from a reply: the five integers of a decision, or the integer of REFUND and RESET.
func understand(op *ledger.Op, a Answer) bool {
	if op.Verb != ledger.Take {
		left, ok := a.Reply.(int64)
		op.Answer.Left = left
		return ok
	}
	figures := a.ints()
	if len(figures) != 5 {
		return false
	}
	allowed := figures[0]
	op.Answer.Left = figures[1]
	switch {
	case allowed < 0 || !op.Partial && allowed > 1 || op.Partial && allowed > max(op.Units, 1):
		return false
	case op.Units == 0: // a dry run
	case op.Partial:
		op.Answer.Allowed = allowed
	default:
		op.Answer.Allowed = allowed * op.Units
	}
	return true
}
