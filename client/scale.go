package client

import (
	"math"
	"time"

	"github.com/weir-project/weir/engine"
)

// scaled is a limit at a fraction. Where less than one unit would be left of it, it is
// one unit, in a time that is longer accordingly; the least of a lifetime quota, of slots
// and of strikes is one all the same.
func scaled(limit engine.Limit, f float64) engine.Limit {
	part := float64(limit.Max) * f
	if limit.Algorithm == engine.LeakyBucket { // a queue may have no room at all
		limit.Max = int64(part)
	} else {
		limit.Max = int64(max(part, 1))
	}
	switch limit.Algorithm {
	case engine.TokenBucket, engine.LeakyBucket:
		limit.Rate = slower(limit.Rate, f)
	case engine.Strike:
		limit.Steps = scaledSteps(limit.Steps, f)
		limit.Max = limit.Steps.At(limit.Steps.Len() - 1).Threshold
	default:
		limit.WindowNs = longer(limit.WindowNs, max(1, 1/part))
	}
	return limit
}

func slower(r engine.Rate, f float64) engine.Rate {
	return Rate{r.Units, time.Duration(longer(r.PerNs, 1/f))}.lowest()
}

// longer rounds up, so that nothing is ever above its fraction, and keeps within what
// the engine takes.
func longer(ns int64, factor float64) int64 {
	return int64(min(math.Ceil(float64(ns)*factor), float64(engine.MaxWindowNs)))
}

// scaledSteps brings thresholds down, and keeps them ascending.
func scaledSteps(steps engine.Steps, f float64) engine.Steps {
	list, last := make([]engine.Step, steps.Len()), int64(0)
	for i := range list {
		s := steps.At(i)
		last = max(int64(float64(s.Threshold)*f), last+1)
		list[i] = engine.Step{Threshold: last, PenaltyNs: s.PenaltyNs, Delay: s.Delay}
	}
	return engine.MakeSteps(list)
}
