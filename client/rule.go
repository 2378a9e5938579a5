package client

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weir-project/weir/engine"
)

// Rule is a limit without a key. Make each rule once and use it for every decision. It is safe for concurrent
// use. A constructor returns a rule even if an argument is out of range. Every decision under such a rule
// returns ErrBadRule, and Err returns the error at once.
type Rule struct {
	command string
	head    []any  // the arguments before the key
	words   []any  // the arguments between the key and the options
	name    string // command and words: rules with the same name are the same rule
	policy  string // of RL.CHECK
	kind    engine.Algorithm
	max     int64
	window  time.Duration  // in which max units become available again; 0: not known, or never
	local   []engine.Limit // the limits by which the fallback Local decides
	ttl     time.Duration  // of slots
	err     error
}

// Err returns why the rule cannot be used, or nil.
func (r *Rule) Err() error { return r.err }

// Name returns the rule as it is sent, without the key: "RL.TOKENBUCKET 10/1s 100". For a policy it returns the
// policy's name.
func (r *Rule) Name() string {
	if r.policy != "" {
		return r.policy
	}
	return r.name
}

// Window returns the time in which the whole limit becomes available again, or 0 if that is not known or never
// happens.
func (r *Rule) Window() time.Duration { return r.window }

// IsPolicy reports whether weir keeps the limits of the rule.
func (r *Rule) IsPolicy() bool { return r.policy != "" }

func newRule(command string, limit engine.Limit, words ...string) *Rule {
	r := &Rule{
		command: command, head: []any{command}, name: command + " " + strings.Join(words, " "),
		kind: limit.Algorithm, max: limit.Max, window: time.Duration(limit.WindowNs), local: []engine.Limit{limit},
	}
	for _, word := range words {
		r.words = append(r.words, word)
	}
	return r
}

// TokenBucket admits bursts of up to burst units, and after that the rate.
func TokenBucket(rate Rate, burst int64) *Rule {
	return given(bucket("RL.TOKENBUCKET", engine.TokenBucket, rate, burst, 1), rate.Per)
}

// LeakyBucket paces requests evenly: the caller delays an admitted request by Decision.RetryAfter. Up to
// capacity requests wait.
func LeakyBucket(rate Rate, capacity int64) *Rule {
	return given(bucket("RL.LEAKYBUCKET", engine.LeakyBucket, rate, capacity, 0), rate.Per)
}

// given returns a rule that a program makes. It refuses a time below a millisecond, which limits nothing: the program
// means a number of seconds. Rules of policies that weir keeps may have such times.
func given(r *Rule, times ...time.Duration) *Rule {
	for _, d := range times {
		if r.err == nil && d != 0 && d < minGiven {
			return bad(r.command, "a time must be at least 1ms, not %v: a plain %d is %d nanoseconds in Go; write "+
				"%d*time.Second", d, d, d, d)
		}
	}
	return r
}

const minGiven = time.Duration(engine.MinGivenNs)

func bucket(command string, a engine.Algorithm, rate Rate, size, least int64) *Rule {
	if rate.Units < 1 || rate.Units > engine.MaxUnits || rate.Per <= 0 || int64(rate.Per) > engine.MaxWindowNs {
		return bad(command, "the rate must be 1 to 2^53 units per up to 366 days, not %d per %v", rate.Units, rate.Per)
	}
	if size < least || size > engine.MaxUnits {
		return bad(command, "the size must be %d to 2^53, not %d", least, size)
	}
	r := newRule(command, engine.Limit{Algorithm: a, Rate: rate.lowest(), Max: size}, rate.String(),
		strconv.FormatInt(size, 10))
	r.window = timesFloat(rate.Per, float64(size)/float64(rate.Units))
	return r
}

// Fixed counts in windows that are aligned to the clock: windows of a minute last from :00 to :59.
func Fixed(window time.Duration, max int64) *Rule { return given(fixed(window, max), window) }

func fixed(window time.Duration, max int64) *Rule {
	return windowed("RL.FIXED", engine.Limit{Algorithm: engine.FixedWindow, WindowNs: int64(window), Max: max},
		engine.MaxUnits)
}

// FixedFirst counts in windows that begin at the first request.
func FixedFirst(window time.Duration, max int64) *Rule { return given(fixedFirst(window, max), window) }

func fixedFirst(window time.Duration, max int64) *Rule {
	limit := engine.Limit{Algorithm: engine.FixedWindow, Mode: engine.FromFirst, WindowNs: int64(window), Max: max}
	return windowed("RL.FIXED", limit, engine.MaxUnits, "FIRST")
}

// Sliding counts exactly over the last window; max is at most a million.
func Sliding(window time.Duration, max int64) *Rule { return given(sliding(window, max), window) }

func sliding(window time.Duration, max int64) *Rule {
	return windowed("RL.SLIDING", engine.Limit{Algorithm: engine.SlidingLog, WindowNs: int64(window), Max: max},
		engine.MaxLogUnits)
}

// SlidingCounter estimates the count over the last window, in constant memory.
func SlidingCounter(window time.Duration, max int64) *Rule {
	return given(slidingCounter(window, max), window)
}

func slidingCounter(window time.Duration, max int64) *Rule {
	return windowed("RL.SLIDINGCOUNTER",
		engine.Limit{Algorithm: engine.SlidingCounter, WindowNs: int64(window), Max: max}, engine.MaxUnits)
}

func windowed(command string, limit engine.Limit, most int64, more ...string) *Rule {
	if limit.WindowNs <= 0 || limit.WindowNs > engine.MaxWindowNs {
		return bad(command, "the window must be above 0 and at most 366 days, not %v", time.Duration(limit.WindowNs))
	}
	if limit.Max < 1 || limit.Max > most {
		return bad(command, "max must be 1 to %d, not %d", most, limit.Max)
	}
	words := append([]string{engine.FormatDuration(limit.WindowNs), strconv.FormatInt(limit.Max, 10)}, more...)
	return newRule(command, limit, words...)
}

// bad returns a rule that cannot be used.
func bad(command, format string, args ...any) *Rule {
	return &Rule{command: command, name: command,
		err: fmt.Errorf("%w: %s: %s", ErrBadRule, command, fmt.Sprintf(format, args...))}
}

// timesFloat returns d times f, at most the longest window.
func timesFloat(d time.Duration, f float64) time.Duration {
	return time.Duration(min(float64(d)*f, float64(engine.MaxWindowNs)))
}
