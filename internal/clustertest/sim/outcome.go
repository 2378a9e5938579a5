package sim

import (
	"errors"

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

// outcomeOf returns the outcome that the status of one operation means. A router in front of several groups answers
// with a status where one group returns an error.
func (s *Simulation) outcomeOf(op engine.Op, status engine.Status) outcome {
	switch o := limiter.OutcomeOfStatus(status); {
	case o == 0:
		return acked
	case o.MayBeDone():
		return unknown
	case o == limiter.ErrWrongGroup || o == limiter.ErrCrossSlot:
		if !misroutes(s.config.Faults) {
			s.violation("an operation on %s was sent to the wrong group", op.Key)
		}
	}
	return refused
}
