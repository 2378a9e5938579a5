package client

import (
	"slices"
	"strconv"
	"time"

	"github.com/weir-project/weir/engine"
)

// Step is one threshold of Strikes and Attempts. If the window has Threshold strikes, the key is blocked for
// the penalty. With a Delay and no Penalty, the caller delays the response to each strike from the threshold
// on.
type Step struct {
	Threshold int64
	Penalty   time.Duration
	Delay     time.Duration
}

// Strikes counts failures over a sliding window and blocks with growing penalties. Peek before the attempt,
// Take after a failure, Reset after a success. Concurrent attempts do not see each other; use Attempts if that
// matters.
func Strikes(window time.Duration, steps ...Step) *Rule { return givenStrikes(0, window, steps) }

// Attempts counts attempts over a sliding window when they begin, and forgives those that succeed: see Begin.
// At most as many attempts run at the same time as the last threshold allows.
func Attempts(window time.Duration, steps ...Step) *Rule {
	return givenStrikes(engine.Attempts, window, steps)
}

func givenStrikes(mode engine.StrikeMode, window time.Duration, steps []Step) *Rule {
	times := []time.Duration{window}
	for _, s := range steps {
		times = append(times, s.Penalty, s.Delay)
	}
	return given(strikes(mode, window, steps), times...)
}

// Extended returns a rule of Strikes or Attempts under which requests during a penalty also count, and restart
// the penalty.
func (r *Rule) Extended() *Rule {
	if r.err != nil {
		return r
	}
	if r.kind != engine.Strike {
		return bad(r.command, "Extended applies only to Strikes and Attempts")
	}
	limit := r.local[0]
	limit.Strikes |= engine.Extend
	words := make([]string, 0, len(r.words)+1)
	for _, w := range r.words {
		words = append(words, w.(string)) // as newRule made them
	}
	return newRule(r.command, limit, append(words, "EXTEND")...)
}

func strikes(mode engine.StrikeMode, window time.Duration, steps []Step) *Rule {
	const command = "RL.STRIKE"
	if window <= 0 || int64(window) > engine.MaxWindowNs {
		return bad(command, "the window must be above 0 and at most 366 days, not %v", window)
	}
	if len(steps) == 0 || len(steps) > engine.MaxSteps {
		return bad(command, "there must be 1 to %d steps, not %d", engine.MaxSteps, len(steps))
	}
	words, last := []string{duration(window)}, int64(0)
	packed := make([]engine.Step, len(steps))
	for i, s := range steps {
		if s.Penalty != 0 && s.Delay != 0 {
			return bad(command, "a step must have a penalty or a delay, not both")
		}
		span := s.Penalty + s.Delay
		if s.Threshold <= last || s.Threshold > engine.MaxLogUnits || span <= 0 || int64(span) > engine.MaxWindowNs {
			return bad(command, "thresholds must ascend and be at most %d, and penalties must be above 0 and at most "+
				"366 days, not %d and %v",
				engine.MaxLogUnits, s.Threshold, span)
		}
		last = s.Threshold
		packed[i] = engine.Step{Threshold: s.Threshold, PenaltyNs: int64(span), Delay: s.Delay != 0}
		words = append(words, strconv.FormatInt(s.Threshold, 10))
		if s.Delay != 0 {
			words = append(words, "DELAY")
		}
		words = append(words, duration(span))
	}
	if mode&engine.Attempts != 0 {
		words = append(words, "ATTEMPTS")
	}
	limit := engine.Limit{Algorithm: engine.Strike, Strikes: mode, WindowNs: int64(window), Max: last,
		Steps: engine.MakeSteps(packed)}
	return newRule(command, limit, words...)
}

// strikes reports whether the rule counts strikes with the given mode.
func (r *Rule) strikes(mode engine.StrikeMode) bool {
	return r.kind == engine.Strike &&
		slices.ContainsFunc(r.local, func(l engine.Limit) bool { return l.Strikes&mode != 0 })
}
