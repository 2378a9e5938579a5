package chaos

import (
	"errors"
	"fmt"

	"github.com/weir-project/weir/internal/clustertest/ledger"
)

// ErrUseless reports that the server was safe only because it did not decide.
var ErrUseless = errors.New("not useful")

// These bounds apply outside the seconds without a leader.
const (
	// minAdmittedShare is the minimum part of the admissible units that must be admitted.
	minAdmittedShare = 0.9
	// minDecisionsPerSecond is far below the rate of the clients. Fewer decisions mean that the clients were stopped
	// rather than slowed.
	minDecisionsPerSecond = 50
	// minHealthyShare is the minimum part of a run with a leader. A run without it proves nothing.
	minHealthyShare = 0.05
	// warmUpSeconds are not judged, because full buckets are emptied in them.
	warmUpSeconds = 3
)

// Second describes one second of a run.
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

// usefulnessOf sums up seconds in which at most perSecond units could be admitted each. A second is healthy if it and
// the second before it had a leader throughout. Clients find a new leader a moment after its election, and then spend
// the units that buckets have accumulated.
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

// minAsked is the number of answers among which at least one must be a grant.
const minAsked = 100

// Granting checks that a limit which refills was granted at least once.
func Granting(ops []ledger.Op) error {
	asked := 0
	for i := range ops {
		if ops[i].Granted() > 0 {
			return nil
		}
		if !ops[i].Unknown {
			asked++
		}
	}
	if asked < minAsked {
		return nil
	}
	return fmt.Errorf("%w: %d answers, and none of them a grant", ErrUseless, asked)
}

// Useful checks that the healthy seconds were used.
func Useful(u Usefulness) error {
	switch {
	case float64(u.Healthy) < minHealthyShare*float64(u.Seconds) || u.Healthy == 0:
		return fmt.Errorf("%w: only %d of %d seconds had a leader", ErrUseless, u.Healthy, u.Seconds)
	case u.Admitted < minAdmittedShare*u.CouldAdmit:
		return fmt.Errorf("%w: %.0f units of %.0f were admitted in %d healthy seconds", ErrUseless, u.Admitted,
			u.CouldAdmit, u.Healthy)
	case u.Decisions < minDecisionsPerSecond*int64(u.Healthy):
		return fmt.Errorf("%w: %d decisions in %d healthy seconds", ErrUseless, u.Decisions, u.Healthy)
	}
	return nil
}
