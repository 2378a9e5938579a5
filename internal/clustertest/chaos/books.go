package chaos

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-project/weir/internal/clustertest/ledger"
)

const (
	// fleetingTTL is the minimum lifetime of a hold of Books.Fleeting. Some of these holds expire while the cluster
	// has no leader.
	fleetingTTL = 1500 * time.Millisecond
	// fleetingOver is the time after which the last hold of Books.Fleeting has expired, with a margin.
	fleetingOver = 2*fleetingTTL + 500*time.Millisecond
	// bookClients is the number of clients for each ring of Books.
	bookClients = 3
)

// errUnsettled reports that a command got no answer within persistFor although no fault is active.
var errUnsettled = errors.New("no answer in time")

// found creates the policies before the first fault.
func (w *Workload) found(ctx context.Context) {
	c := w.client(settlingClient, patientTimeout)
	defer c.Close()
	if w.Spending != nil {
		w.foundSpending(ctx, c)
	}
	for _, ring := range w.Books.Rings() {
		for _, op := range ring.Traffic.Founding() {
			if err := poll(ctx, persistFor,
				func() bool { _, a := c.book(op, false); return a.Outcome == Answered }); err != nil {
				w.Violations.Add(ring.Traffic.Name, fmt.Errorf("%w: %v", errUnsettled, op))
			}
		}
	}
}

// keepBooks runs one operation of a kind. Checks under a policy that changes carry no ID, because a repetition may take
// units again after a reset.
func (w *Workload) keepBooks(c *Client, ring *ledger.Ring) {
	trail := ring.Next()
	w.enter(c, trail, ring.Traffic.Draw(c.rng, trail), ring != &w.Books.Swaps && c.rng.IntN(2) == 0)
}

// enter runs an operation and adds it to its history.
func (w *Workload) enter(c *Client, trail *ledger.Trail, op ledger.Op, withID bool) (ledger.Op, Outcome) {
	op, a := c.book(op, withID)
	switch a.Outcome {
	case Refused:
		w.Violations.Add(trail.Name, fmt.Errorf("%w: %v to %v", ErrBadReply, a.Reply, op))
	case Answered, Unknown:
		trail.Add(op)
	}
	trail.Ended(op)
	return op, a.Outcome
}

// book sends an operation and returns its answer. It repeats a reservation and a commit, which name a hold by its ID,
// and a check with an ID; see ledger.Op.Doubt. It does not repeat a cancellation, because the hold may be committed
// between two attempts and the second answer then differs.
func (c *Client) book(op ledger.Op, withID bool) (ledger.Op, Answer) {
	args, ask := bookArgs(op), c.Call
	switch {
	case op.Verb == ledger.Check && withID:
		args, ask = append(args, "ID", c.freshID()), c.Persist
	case op.Verb == ledger.Reserve, op.Verb == ledger.Commit:
		ask = c.Persist
	}
	a := ask(args...)
	op.Client, op.CallNs, op.ReturnNs, op.Unknown = c.ID, a.CallNs, a.ReturnNs, a.Outcome == Unknown
	if a.Outcome == Answered {
		var understood bool
		if op.Answer, understood = bookAnswer(op, a.Reply); !understood {
			a.Outcome = Refused
		}
	}
	if a.Outcome == Answered && a.Tries > 1 {
		op.Doubt()
	}
	return op, a
}

// settleBooks asks for the units that remain in every history, after all faults and the last fleeting hold have
// ended. An active hold could otherwise hide a lost unit. If ledger.Explained rejects the answers, it waits and asks
// a second time: the cluster's clock stands still without a leader, so a hold may have outlived the first wait.
func (w *Workload) settleBooks(c *Client) {
	ended, cancel := context.WithTimeout(context.Background(), 2*w.over)
	defer cancel()
	time.Sleep(w.over)
	for _, ring := range w.Books.Rings() {
		for _, trail := range ring.Trails() {
			left, err := w.lookUntilAnswered(c, trail, ring.Traffic.Looks(trail))
			if err == nil && ring == &w.Books.Fleeting && ledger.Explained(trail.Ops(), left) != nil {
				_ = sleep(ended, w.over)
				left, err = w.lookUntilAnswered(c, trail, ring.Traffic.Looks(trail))
			}
			if err == nil && ring == &w.Books.Fleeting {
				err = ledger.Explained(trail.Ops(), left)
			}
			w.Violations.Add(trail.Name, err)
		}
	}
}

// lookUntilAnswered asks for the remaining units of every pair that a trail used.
func (w *Workload) lookUntilAnswered(c *Client, trail *ledger.Trail,
	looks []ledger.Op) (left map[ledger.Pair]ledger.Answer, err error) {
	if poll(context.Background(), persistFor, func() (done bool) {
		left, done = w.looks(c, trail, looks)
		return done
	}) != nil {
		return nil, errUnsettled
	}
	return left, nil
}

// looks asks once. It returns false if an answer is missing.
func (w *Workload) looks(c *Client, trail *ledger.Trail, ops []ledger.Op) (map[ledger.Pair]ledger.Answer, bool) {
	left := map[ledger.Pair]ledger.Answer{}
	for _, op := range ops {
		op, outcome := w.enter(c, trail, op, false)
		if outcome != Answered {
			return nil, false
		}
		left[op.Pairs[0]] = op.Answer
	}
	return left, true
}
