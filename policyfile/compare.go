package policyfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/server"
)

// Terms are a policy as a server tells of it.
type Terms struct {
	Name         string     `json:"name"`
	Limits       []string   `json:"limits"`
	Shadow       bool       `json:"shadow"`
	Disabled     bool       `json:"disabled"`
	RetryAfterMs int64      `json:"retry_after_ms"`
	Reserved     string     `json:"reserved"` // like 20%; 0% for none
	Overrides    []Override `json:"overrides"`
}

// Override is an override as a server tells of it.
type Override struct {
	Key    string   `json:"key"`
	Limits []string `json:"limits"` // none: unlimited
	TTLMs  int64    `json:"ttl_ms"` // -1: for ever
}

// Step is one change: the arguments of RL.POLICY, and what is so before and after it in
// words; Before is empty for what is new.
type Step struct {
	Words         []string
	Before, After string
}

// Compare returns the steps from what a server says to what the file says. What the
// file does not name stays.
func (f *File) Compare(now []Terms) (steps []Step) {
	for i := range f.Policies {
		p := &f.Policies[i]
		at := slices.IndexFunc(now, func(t Terms) bool { return t.Name == p.Name })
		before, after := "", setText(p)
		if at >= 0 {
			before = now[at].text()
		}
		if before != after {
			limits, terms := server.PolicyWords(p.Set.Policy.Terms)
			words := []string{"SET", p.Name}
			for _, l := range limits {
				words = append(append(words, "LIMIT"), strings.Fields(l)...)
			}
			steps = append(steps, Step{append(words, terms...), before, after})
		}
		for k := range p.Overrides {
			if step, differs := compareOverride(p.Name, &p.Overrides[k], now, at); differs {
				steps = append(steps, step)
			}
		}
	}
	return steps
}

func setText(p *Policy) string {
	limits, terms := server.PolicyWords(p.Set.Policy.Terms)
	return text(p.Name, limits, terms)
}

func text(name string, limits, terms []string) string {
	words := []string{name}
	for _, l := range limits {
		words = append(words, "LIMIT", l)
	}
	return strings.Join(append(words, terms...), " ")
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
	return text(t.Name, t.Limits, terms)
}

// compareOverride compares limits; how long an override holds does not matter, for it
// grows shorter by itself.
func compareOverride(policy string, op *engine.Op, now []Terms, at int) (step Step, differs bool) {
	o := &op.Policy.Terms.Overrides[0]
	limits, _ := server.PolicyWords(&engine.Policy{Limits: o.Limits})
	step.Words, step.After = []string{"OVERRIDE", policy, o.Pattern}, overrideText(policy, o.Pattern, limits)
	for _, l := range limits {
		step.Words = append(append(step.Words, "LIMIT"), strings.Fields(l)...)
	}
	if len(limits) == 0 {
		step.Words = append(step.Words, "UNLIMITED")
	}
	if op.TTLNs > 0 {
		step.Words = append(step.Words, "TTL", engine.FormatDuration(op.TTLNs))
	}
	if at >= 0 {
		for _, there := range now[at].Overrides {
			if there.Key == o.Pattern && there.TTLMs != 0 {
				step.Before = overrideText(policy, there.Key, there.Limits)
			}
		}
	}
	return step, step.Before != step.After
}

func overrideText(policy, key string, limits []string) string {
	if len(limits) == 0 {
		return fmt.Sprintf("%s for %s UNLIMITED", policy, key)
	}
	return text(policy+" for "+key, limits, nil)
}
