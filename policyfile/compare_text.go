package policyfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/server/policytext"
)

// The functions below format policies and overrides for a plan.

// overrides reports whether the file has an override for a pattern.
func (p *Policy) overrides(pattern string) bool {
	return slices.ContainsFunc(p.Overrides, func(op engine.Op) bool {
		return op.Policy.Terms.Overrides[0].Pattern == pattern
	})
}

func setText(p *Policy, owner string) string {
	shown := *p.Set.Policy.Terms
	shown.RetryNs = (shown.RetryNs + 1e6 - 1) / 1e6 * 1e6 // rounded as RL.POLICY GET reports it
	limits, terms := policytext.Words(&shown)
	return text(p.Name, limits, withOwner(terms, owner))
}

func text(name string, limits, terms []string) string {
	words := []string{name}
	for _, l := range limits {
		words = append(words, "LIMIT", l)
	}
	return strings.Join(append(words, terms...), " ")
}

func withOwner(terms []string, owner string) []string {
	if owner == "" {
		return terms
	}
	return append(terms, "OWNER", owner)
}

func (t *Terms) text() string {
	var terms []string
	if t.Shadow {
		terms = append(terms, "SHADOW")
	}
	if t.Disabled {
		terms = append(terms, "DISABLED")
	}
	if t.RetryAfterMs > 0 {
		terms = append(terms, "RETRYAFTER", engine.FormatDuration(t.RetryAfterMs*1e6))
	}
	if t.Reserved != "" && t.Reserved != "0%" {
		terms = append(terms, "RESERVED", t.Reserved)
	}
	if t.Layout != "" {
		terms = append(terms, "LAYOUT", t.Layout)
	}
	if t.reports() {
		terms = append(terms, "REPORT", t.Report)
	}
	if t.Record {
		terms = append(terms, "RECORD")
	}
	return text(t.Name, t.Limits, withOwner(terms, t.Owner))
}

// reports reports whether the policy has a value of REPORT other than the default burst. An older server sends no
// value.
func (t *Terms) reports() bool { return t.Report != "" && t.Report != "burst" }

func overrideText(policy, key string, limits []string) string {
	if len(limits) == 0 {
		return fmt.Sprintf("%s for %s UNLIMITED", policy, key)
	}
	return text(policy+" for "+key, limits, nil)
}

// expiry formats the remaining time of an override, if it has an expiry.
func expiry(ns int64) string {
	if ns <= 0 {
		return ""
	}
	return " TTL " + engine.FormatDuration(ns)
}
