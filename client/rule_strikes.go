package client

import (
	"slices"
	"strings"
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
func Strikes(window time.Duration, steps ...Step) *Rule { return strikes(window, steps) }

// Attempts counts attempts over a sliding window when they begin, and forgives those that succeed: see Begin.
// At most as many attempts run at the same time as the last threshold allows.
func Attempts(window time.Duration, steps ...Step) *Rule {
	return strikes(window, steps, "ATTEMPTS")
}

// Extended returns a rule of Strikes or Attempts under which requests during a penalty also count, and restart
// the penalty.
func (r *Rule) Extended() *Rule {
	switch {
	case r.err != nil:
		return r
	case r.kind != engine.Strike:
		return bad(r.command, "Extended applies only to Strikes and Attempts")
	case r.strikes(engine.Extend):
		return r
	}
	return newRule(append(strings.Fields(strings.TrimPrefix(r.name, "RL.")), "EXTEND")...)
}

func strikes(window time.Duration, steps []Step, more ...string) *Rule {
	words, times := []string{"STRIKE", duration(window)}, []time.Duration{window}
	for _, s := range steps {
		if s.Penalty != 0 && s.Delay != 0 {
			return bad("RL.STRIKE", "a step must have a penalty or a delay, not both")
		}
		span := s.Penalty + s.Delay
		if words = append(words, decimal(s.Threshold)); s.Delay != 0 {
			words = append(words, "DELAY")
		}
		words, times = append(words, duration(span)), append(times, span)
	}
	return given(newRule(append(words, more...)...), times...)
}

// strikes reports whether the rule counts strikes with the given mode.
func (r *Rule) strikes(mode engine.StrikeMode) bool {
	return r.kind == engine.Strike &&
		slices.ContainsFunc(r.local, func(l engine.Limit) bool { return l.Strikes&mode != 0 })
}
