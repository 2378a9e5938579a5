package client

import (
	"strconv"
	"time"

	"github.com/weir-project/weir/engine"
)

// Calendar is a calendar window, or the window that never ends.
type Calendar string

// The windows of Quota. Weeks begin on Monday.
const (
	Day     Calendar = "DAY"
	Week    Calendar = "WEEK"
	Month   Calendar = "MONTH"
	Year    Calendar = "YEAR"
	Forever Calendar = "FOREVER"
)

// calendarDays is the longest length of each window in days. The fallback does not look up the calendar: its
// windows begin at the first request and have this length.
var calendarDays = map[Calendar]int64{Day: 1, Week: 7, Month: 31, Year: 366, Forever: 0}

// Quota counts in calendar windows of a time zone (an IANA name; empty: UTC). With Forever it counts without
// end.
func Quota(window Calendar, zone string, max int64) *Rule {
	days, known := calendarDays[window]
	switch {
	case !known:
		return bad("RL.FIXED", "the window must be Day, Week, Month, Year or Forever, not %q", string(window))
	case max < 1 || max > engine.MaxUnits:
		return bad("RL.FIXED", "max must be 1 to 2^53, not %d", max)
	}
	limit := engine.Limit{Algorithm: engine.FixedWindow, Mode: engine.FromFirst, WindowNs: days * int64(24*time.Hour),
		Max: max}
	if window == Forever {
		limit.Mode = engine.Forever
	}
	words := []string{string(window), strconv.FormatInt(max, 10)}
	if zone != "" {
		words = append(words, "TZ", zone)
	}
	return newRule("RL.FIXED", limit, words...)
}

// Slots admits max units at the same time. A slot is held until it is released, or until ttl after it was taken
// or last renewed. ttl 0 means until it is released. See Acquire.
func Slots(max int64, ttl time.Duration) *Rule {
	if max < 1 || max > engine.MaxUnits || ttl < 0 || int64(ttl) > engine.MaxWindowNs {
		return bad("RL.ACQUIRE", "max must be 1 to 2^53 and ttl 0 to 366 days, not %d and %v", max, ttl)
	}
	r := newRule("RL.ACQUIRE", engine.Limit{Algorithm: engine.Concurrency, Max: max}, strconv.FormatInt(max, 10),
		duration(ttl))
	r.ttl = ttl
	return given(r, ttl)
}

// Policy decides by limits that weir keeps (RL.CHECK). If Options.WhenDown is Local and weir is not reached,
// the limits last fetched from weir decide, each scaled by the fraction. A policy that was not used before is
// denied. Rules given here stand in for the policy instead, and nothing is fetched. They may not be slots or
// policies.
func Policy(name string, locally ...*Rule) *Rule {
	r := &Rule{command: "RL.CHECK", head: []any{"RL.CHECK", name}, name: "RL.CHECK " + name, policy: name}
	for _, l := range locally {
		if l.err != nil {
			return bad("RL.CHECK", "a fallback rule is invalid: %v", l.err)
		}
		if l.policy != "" {
			return bad("RL.CHECK", "a policy cannot be a fallback rule")
		}
		r.local = append(r.local, l.local...)
		r.window = max(r.window, l.window)
	}
	if err := r.terms(r.local).Validate(); err != nil {
		return bad("RL.CHECK", "%q: %v", name, err)
	}
	return r
}

// someLimit is a placeholder for the limits of a policy that has none in this process, because Policy.Validate
// requires a limit.
var someLimit = []engine.Limit{{Algorithm: engine.SlidingCounter, WindowNs: 1, Max: 1}}

// terms returns the policy with the given limits, as the engine has it.
func (r *Rule) terms(limits []engine.Limit) *engine.Policy {
	if len(limits) == 0 {
		limits = someLimit
	}
	p := &engine.Policy{Name: r.policy}
	for _, limit := range limits {
		p.Limits = append(p.Limits, engine.PolicyLimit{Limit: limit})
	}
	return p
}
