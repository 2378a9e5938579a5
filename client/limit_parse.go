package client

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weir-project/weir/engine"
)

// parseLimit parses a limit in the format of RL.POLICY GET, such as "TOKENBUCKET 10/1s 50". Calendar windows
// are converted as by Quota.
func parseLimit(text string) (l engine.PolicyLimit, err error) {
	words := strings.Fields(text)
	unknown := fmt.Errorf("this client does not know the limit %q", text)
	if len(words) < 3 {
		return l, unknown
	}
	r, words := ruleOf(words)
	switch {
	case r == nil:
		return l, unknown
	case r.err != nil:
		return l, r.err
	}
	l.Limit = r.local[0]
	if len(words) == 2 && words[0] == "MAXWAIT" {
		l.WaitNs, err = engine.ParseDuration([]byte(words[1]))
		words = nil
	}
	if err != nil || len(words) > 0 {
		return l, unknown
	}
	return l, nil
}

// ruleOf returns the rule at the beginning of a limit's words, or nil, and the words after it.
func ruleOf(words []string) (r *Rule, rest []string) {
	if words[0] == "STRIKE" {
		return strikesOf(words[1:]), nil
	}
	size, err := strconv.ParseInt(words[2], 10, 64)
	if err != nil {
		return nil, nil
	}
	rest = words[3:]
	switch words[0] {
	case "TOKENBUCKET", "LEAKYBUCKET":
		rate, err := engine.ParseRate([]byte(words[1]))
		if err != nil {
			return nil, nil
		}
		per := Rate{rate.Units, time.Duration(rate.PerNs)}
		if words[0] == "LEAKYBUCKET" {
			return bucket("RL.LEAKYBUCKET", engine.LeakyBucket, per, size, 0), rest
		}
		return bucket("RL.TOKENBUCKET", engine.TokenBucket, per, size, 1), rest
	case "FIXED":
		return fixedOf(words[1], size, rest)
	}
	window, err := engine.ParseDuration([]byte(words[1]))
	switch {
	case err != nil:
		return nil, nil
	case words[0] == "SLIDING":
		return sliding(time.Duration(window), size), rest
	case words[0] == "SLIDINGCOUNTER":
		return slidingCounter(time.Duration(window), size), rest
	}
	return nil, nil
}

func fixedOf(window string, size int64, rest []string) (*Rule, []string) {
	if _, calendar := calendarDays[Calendar(window)]; calendar {
		if len(rest) == 2 && rest[0] == "TZ" {
			return Quota(Calendar(window), rest[1], size), nil
		}
		return Quota(Calendar(window), "", size), rest
	}
	ns, err := engine.ParseDuration([]byte(window))
	switch {
	case err != nil:
		return nil, nil
	case len(rest) == 1 && rest[0] == "FIRST":
		return fixedFirst(time.Duration(ns), size), nil
	}
	return fixed(time.Duration(ns), size), rest
}

// strikesOf parses a window, thresholds with their penalties or delays, and the modes after them. It returns
// nil for unknown words.
func strikesOf(words []string) *Rule {
	window, err := engine.ParseDuration([]byte(words[0]))
	if err != nil {
		return nil
	}
	var steps []Step
	for words = words[1:]; len(words) > 0 && !isMode(words[0]); {
		step, rest, ok := stepOf(words)
		if !ok {
			return nil
		}
		steps, words = append(steps, step), rest
	}
	mode := engine.StrikeMode(0)
	for _, word := range words {
		if !isMode(word) {
			return nil
		}
		mode |= strikeModes[word]
	}
	r := strikes(mode&engine.Attempts, time.Duration(window), steps)
	if mode&engine.Extend != 0 {
		r = r.Extended()
	}
	return r
}

var strikeModes = map[string]engine.StrikeMode{"ATTEMPTS": engine.Attempts, "EXTEND": engine.Extend}

func isMode(word string) bool { return strikeModes[word] != 0 }

// stepOf parses a threshold and its penalty or delay.
func stepOf(words []string) (s Step, rest []string, ok bool) {
	threshold, err := strconv.ParseInt(words[0], 10, 64)
	words = words[1:]
	delay := len(words) > 0 && words[0] == "DELAY"
	if delay {
		words = words[1:]
	}
	if err != nil || len(words) == 0 {
		return s, nil, false
	}
	ns, err := engine.ParseDuration([]byte(words[0]))
	if err != nil {
		return s, nil, false
	}
	if s.Threshold = threshold; delay {
		s.Delay = time.Duration(ns)
	} else {
		s.Penalty = time.Duration(ns)
	}
	return s, words[1:], true
}
