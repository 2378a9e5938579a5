package chaos

import (
	"errors"
	"fmt"
)

// ErrUseless: the server was safe by not doing its work.
var ErrUseless = errors.New("not useful")

// What usefulness asks for, outside the seconds without a leader.
const (
	// minAdmittedShare of what could be admitted must be.
	minAdmittedShare = 0.9
	// minDecisionsPerSecond is far below what the clients ask for: less means that
	// they were stopped and not merely slowed.
	minDecisionsPerSecond = 50
	// minHealthyShare of a run must have had a leader: a run that was broken
	// throughout has shown nothing.
	minHealthyShare = 0.05
	// warmUpSeconds are not judged: full buckets are emptied in them.
	warmUpSeconds = 3
)

// Second is what happened in one second of a run.
type Second struct {
	Led       bool  // some node led throughout
	Decisions int64 // answered operations
	Admitted  int64 // units, on the keys whose clients always want more
}

// Usefulness sums up the healthy seconds of a run.
type Usefulness struct {
	Seconds, Healthy     int
	Decisions            int64 // in the healthy seconds
	Admitted, CouldAdmit float64
}

// usefulnessOf sums up seconds in which at most perSecond units could be admitted
// each. A second counts as healthy when it and the one before it had a leader
// throughout: a new leader is found by its clients within a moment, not before it
// leads, and what buckets have saved up meanwhile is spent in that moment.
func usefulnessOf(perSecond float64, seconds []Second) Usefulness {
	u := Usefulness{Seconds: len(seconds)}
	for i, s := range seconds {
		if i < warmUpSeconds || !s.Led || !seconds[i-1].Led {
			continue
		}
		u.Healthy++
		u.Decisions += s.Decisions
		u.Admitted += float64(s.Admitted)
		u.CouldAdmit += perSecond
	}
	return u
}

// minAsked is from how many answers on it is odd that none is a grant.
const minAsked = 100

// Granting says whether a limit of which there always is some again was ever granted.
func Granting(ops []Op) error {
	asked := 0
	for i := range ops {
		if ops[i].grants() > 0 {
			return nil
		}
		if ops[i].Outcome == Answered {
			asked++
		}
	}
	if asked < minAsked {
		return nil
	}
	return fmt.Errorf("%w: %d answers, and none of them a grant", ErrUseless, asked)
}

// Useful says whether the healthy seconds were put to use.
func Useful(u Usefulness) error {
	switch {
	case float64(u.Healthy) < minHealthyShare*float64(u.Seconds) || u.Healthy == 0:
		return fmt.Errorf("%w: only %d of %d seconds had a leader", ErrUseless, u.Healthy, u.Seconds)
	case u.Admitted < minAdmittedShare*u.CouldAdmit:
		return fmt.Errorf("%w: %.0f units of %.0f were admitted in %d healthy seconds", ErrUseless, u.Admitted, u.CouldAdmit, u.Healthy)
	case u.Decisions < minDecisionsPerSecond*int64(u.Healthy):
		return fmt.Errorf("%w: %d decisions in %d healthy seconds", ErrUseless, u.Decisions, u.Healthy)
	}
	return nil
}
