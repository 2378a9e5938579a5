package wire

import "github.com/weir-project/weir/engine"

// Sound reports whether the engine can compute with the operation: what the server
// has checked before, as far as a foreign byte could make the engine fail. What is
// not sound must not get into the log, where every node would stop at it.
func Sound(op *engine.Op) bool {
	within := func(v, low, high int64) bool { return low <= v && v <= high }
	ok := within(int64(len(op.Key)), 1, engine.MaxKeyLen) && len(op.ID) <= engine.MaxIDLen &&
		within(op.Cost, 0, engine.MaxUnits) && within(op.WaitNs, 0, engine.Never) && within(op.TTLNs, 0, engine.Never)
	switch op.Code {
	case engine.OpTake:
		return ok && soundLimit(&op.Limit) && len(op.Text) <= engine.MaxHolderLen &&
			(op.Limit.Mode < engine.Day || op.Limit.Mode > engine.Year || op.Calendar != nil)
	case engine.OpRelease, engine.OpRenew:
		return ok && within(int64(len(op.Text)), 1, engine.MaxHolderLen)
	case engine.OpBlock:
		return ok && len(op.Text) <= engine.MaxReasonLen
	case engine.OpIncr:
		return ok && op.Incr != nil && op.Incr.Expire <= engine.ExpireNone
	case engine.OpScript:
		return ok && op.Script != nil && op.Script.Sound()
	default:
		return ok && op.Code <= lastCode
	}
}

// lastCode is the newest operation this version knows.
const lastCode = engine.OpScript

func soundLimit(l *engine.Limit) bool {
	if l.Rate.Units < 0 || l.Rate.Units > engine.MaxUnits || l.Rate.PerNs < 0 || l.Rate.PerNs > engine.MaxWindowNs ||
		l.Max < 0 || l.Max > engine.MaxUnits || l.WindowNs < 0 || l.WindowNs > engine.MaxWindowNs || l.Mode > engine.Forever {
		return false
	}
	switch l.Algorithm {
	case engine.TokenBucket, engine.LeakyBucket:
		return l.Rate.Units > 0 && l.Rate.PerNs > 0
	case engine.SlidingLog, engine.SlidingCounter:
		return l.WindowNs > 0
	case engine.FixedWindow:
		return l.WindowNs > 0 || l.Mode >= engine.Day
	case engine.Strike:
		return l.WindowNs > 0 && soundSteps(l.Steps)
	default:
		return l.Algorithm == engine.Concurrency
	}
}

// stepBytes is the length of one step of a strike limit.
const stepBytes = 16

func soundSteps(s engine.Steps) bool {
	if len(s) == 0 || len(s)%stepBytes != 0 || s.Len() > engine.MaxSteps {
		return false
	}
	for i := range s.Len() {
		step := s.At(i)
		if step.Threshold < 1 || step.Threshold > engine.MaxLogUnits || step.PenaltyNs < 1 || step.PenaltyNs > engine.MaxWindowNs ||
			i > 0 && step.Threshold <= s.At(i-1).Threshold {
			return false
		}
	}
	return true
}
