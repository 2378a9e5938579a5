package client

import (
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limits"
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

// Quota counts in calendar windows of a time zone (an IANA name; empty: UTC). With Forever it counts without
// end.
func Quota(window Calendar, zone string, max int64) *Rule {
	switch window {
	case Day, Week, Month, Year, Forever:
	default:
		return bad("RL.FIXED", "the window must be Day, Week, Month, Year or Forever, not %q", string(window))
	}
	words := []string{"FIXED", string(window), decimal(max)}
	if zone != "" {
		words = append(words, "TZ", zone)
	}
	return newRule(words...)
}

// Slots admits max units at the same time. A slot is held until it is released, or until ttl after it was taken
// or last renewed. ttl 0 means until it is released. See Acquire.
func Slots(max int64, ttl time.Duration) *Rule {
	words := []string{"ACQUIRE", decimal(max), duration(ttl)}
	r := ruleOf(engine.Limit{Algorithm: engine.Concurrency, Max: max}, words)
	if r = given(r, ttl); r.err != nil {
		return r
	}
	if _, _, err := limits.Slots([][]byte{[]byte(words[1]), []byte(words[2])}); err != nil {
		return bad(r.command, "%v", err)
	}
	r.ttl = ttl
	return r
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
func (r *Rule) terms(all []engine.Limit) *engine.Policy {
	if len(all) == 0 {
		all = someLimit
	}
	p := &engine.Policy{Name: r.policy}
	for _, limit := range all {
		p.Limits = append(p.Limits, engine.PolicyLimit{Limit: limit})
	}
	return p
}
