package client

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limits"
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
	notify  []any          // the arguments after words in a policy
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

// newRule returns the rule that the words of a limit give, such as FIXED, 1m and 5.
func newRule(words ...string) *Rule {
	l, err := parseLimit(words)
	if err != nil {
		return bad("RL."+words[0], "%v", err)
	}
	return ruleOf(l.Limit, words)
}

// ruleOf returns the rule of a limit. words are its command without "RL.", and the arguments.
func ruleOf(limit engine.Limit, words []string) *Rule {
	command := "RL." + words[0]
	r := &Rule{
		command: command, head: []any{command}, name: "RL." + strings.Join(words, " "),
		kind: limit.Algorithm, max: limit.Max, window: limits.Window(&limit), local: []engine.Limit{limit},
	}
	for _, word := range words[1:] {
		r.words = append(r.words, word)
	}
	return r
}

// parseLimit parses a limit of a policy. Times may be as short as older versions of weir accepted. The fallback looks
// up no calendar: its calendar windows begin at the first request and have their longest length.
func parseLimit(words []string) (engine.PolicyLimit, error) {
	args := make([][]byte, len(words))
	for i, word := range words {
		args[i] = []byte(word)
	}
	r := limits.Reader{Stored: true}
	l, err := r.Limit(args)
	if l.Limit.Mode.Calendar() {
		l.Limit.WindowNs, l.Limit.Mode = int64(limits.Window(&l.Limit)), engine.FromFirst
	}
	return l, err
}

// TokenBucket admits bursts of up to burst units, and after that the rate.
func TokenBucket(rate Rate, burst int64) *Rule {
	return given(newRule("TOKENBUCKET", rate.String(), decimal(burst)), rate.Per)
}

// LeakyBucket paces requests evenly: the caller delays an admitted request by Decision.RetryAfter. Up to
// capacity requests wait.
func LeakyBucket(rate Rate, capacity int64) *Rule {
	return given(newRule("LEAKYBUCKET", rate.String(), decimal(capacity)), rate.Per)
}

// given returns a rule that a program makes. It refuses a time below a millisecond, which limits nothing: the program
// means a number of seconds. Rules of policies that weir keeps may have such times.
func given(r *Rule, times ...time.Duration) *Rule {
	for _, d := range times {
		if r.err == nil && 0 < d && d < minGiven {
			return bad(r.command, "a time must be at least 1ms, not %v: a plain %d is %d nanoseconds in Go; write "+
				"%d*time.Second", d, d, d, d)
		}
	}
	return r
}

const minGiven = time.Duration(engine.MinGivenNs)

// Fixed counts in windows that are aligned to the clock: windows of a minute last from :00 to :59.
func Fixed(window time.Duration, max int64) *Rule { return windowed("FIXED", window, max) }

// FixedFirst counts in windows that begin at the first request.
func FixedFirst(window time.Duration, max int64) *Rule {
	return windowed("FIXED", window, max, "FIRST")
}

// Notify returns the rule as a limit of a policy that writes an event when the used units of a key reach a share of
// the limit: once in a window for each of up to 8 ascending shares, in percent from 1 to 100. It works for Fixed,
// FixedFirst and Quota. The rule is for SetPolicy and OverridePolicy only. See Event.
func (r *Rule) Notify(percent ...int) *Rule {
	if r.err != nil {
		return r
	}
	words := strings.Fields(strings.TrimPrefix(r.name, "RL."))
	next := *r
	next.notify = []any{"NOTIFY"}
	for _, share := range percent {
		next.notify = append(next.notify, strconv.Itoa(share)+"%")
	}
	for _, word := range next.notify {
		words = append(words, word.(string))
	}
	if _, err := parseLimit(words); err != nil {
		return bad(r.command, "%v", err)
	}
	next.name = "RL." + strings.Join(words, " ")
	return &next
}

// Sliding counts exactly over the last window; max is at most a million.
func Sliding(window time.Duration, max int64) *Rule { return windowed("SLIDING", window, max) }

// SlidingCounter estimates the count over the last window, in constant memory.
func SlidingCounter(window time.Duration, max int64) *Rule {
	return windowed("SLIDINGCOUNTER", window, max)
}

func windowed(algorithm string, window time.Duration, max int64, more ...string) *Rule {
	words := append([]string{algorithm, duration(window), decimal(max)}, more...)
	return given(newRule(words...), window)
}

// bad returns a rule that cannot be used.
func bad(command, format string, args ...any) *Rule {
	return &Rule{command: command, name: command,
		err: fmt.Errorf("%w: %s: %s", ErrBadRule, command, fmt.Sprintf(format, args...))}
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }
