package client

import (
	"math"

	"github.com/weir-project/weir/engine"
)

// scaled returns a limit at a fraction. If less than one unit would be left, it is one unit in a proportionally
// longer time. A lifetime quota, slots and strikes keep at least one unit as well, without a longer time.
func scaled(limit engine.Limit, f float64) engine.Limit {
	part := float64(limit.Max) * f
	if limit.Algorithm == engine.LeakyBucket { // a queue may have capacity 0
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
	slow, _ := engine.MakeRate(r.Units, longer(r.PerNs, 1/f), 1) // never fails: both are within their bounds
	return slow
}

// longer multiplies a time by a factor, at most to the engine's bound. It rounds up, so that no limit exceeds its
// fraction.
func longer(ns int64, factor float64) int64 {
	return int64(min(math.Ceil(float64(ns)*factor), float64(engine.MaxWindowNs)))
}

// scaledSteps scales thresholds down and keeps them ascending.
func scaledSteps(steps engine.Steps, f float64) engine.Steps {
	list, last := make([]engine.Step, steps.Len()), int64(0)
	for i := range list {
		s := steps.At(i)
		last = max(int64(float64(s.Threshold)*f), last+1)
		list[i] = engine.Step{Threshold: last, PenaltyNs: s.PenaltyNs, Delay: s.Delay}
	}
	return engine.MakeSteps(list)
}
