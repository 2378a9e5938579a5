package chaos

import (
	"errors"
	"fmt"
)

var (
	// ErrForgotten reports that acknowledged grants are no longer counted.
	ErrForgotten = errors.New("acknowledged units are not counted")
	// ErrOvercharged reports that more units are counted than clients took with success or with an unknown outcome.
	ErrOvercharged = errors.New("units are counted that nobody was given")
)

// Account sums up the history of one limit that never refills.
type Account struct {
	Granted, Refunded           int64 // with a known outcome
	MaybeGranted, MaybeRefunded int64 // with an unknown outcome
}

// accountOf sums up a history without resets.
func accountOf(ops []Op) (a Account) {
	for _, op := range ops {
		switch {
		case op.Verb == Take && op.Outcome == Answered:
			a.Granted += op.Granted
		case op.Verb == Take:
			a.MaybeGranted += op.Units
		case op.Verb == Refund && op.Outcome == Answered:
			a.Refunded += op.Units
		case op.Verb == Refund:
			a.MaybeRefunded += op.Units
		}
	}
	return a
}

// Accounted compares the remaining units of a limit of maxUnits with the history of its clients, after all operations
// have ended. Every acknowledged grant must be counted. No unit may be counted that no operation can have taken.
// Without unknown outcomes both bounds are equal, which also checks that each operation ran exactly once.
func Accounted(maxUnits, left int64, ops []Op) error {
	a := accountOf(ops)
	most := maxUnits - a.Granted + a.Refunded + a.MaybeRefunded
	least := maxUnits - a.Granted - a.MaybeGranted + a.Refunded
	switch {
	case left > most:
		return fmt.Errorf("%w: %d of %d left, at most %d can be: %+v\n%s", ErrForgotten, left, maxUnits, most, a,
			show(ops[max(0, len(ops)-maxShownOps):]))
	case left < least:
		return fmt.Errorf("%w: %d of %d left, at least %d must be: %+v\n%s", ErrOvercharged, left, maxUnits, least, a,
			show(ops[max(0, len(ops)-maxShownOps):]))
	}
	return nil
}
