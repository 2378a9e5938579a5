package policyfile

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/server/policytext"
)

// ErrOwner is wrapped by the error of Conflicts about a file that names policies of another owner.
var ErrOwner = errors.New("another owner")

// Terms is a policy as a server reports it.
type Terms struct {
	Name         string     `json:"name"`
	Owner        string     `json:"owner"` // empty: no owner
	Version      int64      `json:"-"`     // engine.Policy.Version
	Limits       []string   `json:"limits"`
	Shadow       bool       `json:"shadow"`
	Disabled     bool       `json:"disabled"`
	RetryAfterMs int64      `json:"retry_after_ms"`
	Reserved     string     `json:"reserved"` // like 20%; 0%: none
	Layout       string     `json:"layout"`   // empty: none
	Report       string     `json:"report"`   // burst, or a duration
	Record       bool       `json:"record"`
	Overrides    []Override `json:"overrides"`
}

// Override is an override as a server reports it.
type Override struct {
	Key    string   `json:"key"`
	Limits []string `json:"limits"` // empty: unlimited
	TTLMs  int64    `json:"ttl_ms"` // -1: no expiry
}

// Plan lists the changes that bring the policies of a server to the state of a file.
type Plan struct {
	// Steps add or change policies and overrides that are missing on the server or differ there.
	Steps []Step
	// Extra removes policies and overrides that the server has and the file does not: policies of the file's owner, and
	// overrides without an expiry. An override with an expiry stays.
	Extra []Step

	versions map[string]int64 // the versions of the policies when Terms were read, by name
}

// Step is one change: the arguments of RL.POLICY, and the state before and after it as text. Before is empty for an
// addition, After for a removal.
type Step struct {
	Policy        string
	Words         []string
	Before, After string
}

// Commands returns the RL.POLICY arguments that execute the plan in one transaction. With prune, they also execute
// Extra, before Steps. The first change of each policy is conditional on its version. So the transaction does nothing
// if a policy has changed since its Terms were read.
func (p *Plan) Commands(prune bool) (all [][]string) {
	steps := p.Steps
	if prune {
		steps = slices.Concat(p.Extra, p.Steps)
	}
	conditional := map[string]bool{}
	for _, step := range steps {
		words := slices.Clone(step.Words)
		if !conditional[step.Policy] {
			conditional[step.Policy] = true
			words = append(words, "IF", strconv.FormatInt(p.versions[step.Policy], 10))
		}
		all = append(all, words)
	}
	return all
}

// Compare returns the plan that brings the policies of a server to the state of the file.
func (f *File) Compare(now []Terms) *Plan {
	plan := &Plan{versions: map[string]int64{}}
	byName := map[string]*Terms{}
	for i := range now {
		plan.versions[now[i].Name] = now[i].Version
		byName[now[i].Name] = &now[i]
	}
	for i := range f.Policies {
		p := &f.Policies[i]
		there := byName[p.Name]
		delete(byName, p.Name)
		plan.set(f.Owner, p, there)
		for k := range p.Overrides {
			plan.override(p.Name, &p.Overrides[k], there)
		}
		plan.removeOverrides(p, there)
	}
	for i := range now {
		if name := now[i].Name; byName[name] != nil && now[i].Owner == f.Owner {
			plan.Extra = append(plan.Extra, Step{name, []string{"DEL", name}, now[i].text(), ""})
		}
	}
	return plan
}

// Conflicts returns an error if the server has a policy of the file with another owner. The error names each such
// policy and both owners.
func (f *File) Conflicts(now []Terms) error {
	var conflicts []error
	for i := range f.Policies {
		p := &f.Policies[i]
		at := slices.IndexFunc(now, func(t Terms) bool { return t.Name == p.Name })
		if at >= 0 && now[at].Owner != "" && now[at].Owner != f.Owner {
			conflicts = append(conflicts, fmt.Errorf("%w: %s:%d: policy %s belongs to %s, and this file to %s",
				ErrOwner, f.Path, p.Line, p.Name, now[at].Owner, ownerName(f.Owner)))
		}
	}
	return errors.Join(conflicts...)
}

func ownerName(owner string) string {
	if owner == "" {
		return "no owner (it has no field owner)"
	}
	return owner
}

func (p *Plan) set(owner string, policy *Policy, there *Terms) {
	step := Step{Policy: policy.Name, After: setText(policy, owner)}
	had := ""
	if there != nil {
		step.Before, had = there.text(), there.Owner
	}
	if step.Before == step.After {
		return
	}
	limits, terms := policytext.Words(policy.Set.Policy.Terms)
	step.Words = []string{"SET", policy.Name}
	for _, l := range limits {
		step.Words = append(append(step.Words, "LIMIT"), strings.Fields(l)...)
	}
	step.Words = append(step.Words, terms...)
	switch {
	case owner == had:
	case owner == "":
		step.Words = append(step.Words, "OWNER", "NONE")
	default:
		step.Words = append(step.Words, "OWNER", owner)
	}
	p.Steps = append(p.Steps, step)
}

// override adds a step for an override whose limits differ, or that has an expiry on one side alone. It ignores the
// remaining time of the override, which decreases by itself.
func (p *Plan) override(policy string, op *engine.Op, there *Terms) {
	o := &op.Policy.Terms.Overrides[0]
	limits, _ := policytext.Words(&engine.Policy{Limits: o.Limits})
	step := Step{Policy: policy, After: overrideText(policy, o.Pattern, limits)}
	step.Words = []string{"OVERRIDE", policy, o.Pattern}
	for _, l := range limits {
		step.Words = append(append(step.Words, "LIMIT"), strings.Fields(l)...)
	}
	if len(limits) == 0 {
		step.Words = append(step.Words, "UNLIMITED")
	}
	if op.TTLNs > 0 {
		step.Words = append(step.Words, "TTL", engine.FormatDuration(op.TTLNs))
	}
	if there != nil {
		for _, was := range there.Overrides {
			if was.Key != o.Pattern || was.TTLMs == 0 {
				continue
			}
			if step.Before = overrideText(policy, was.Key, was.Limits); (was.TTLMs < 0) != (op.TTLNs == 0) {
				step.Before += expiry(was.TTLMs * 1e6)
				step.After += expiry(op.TTLNs)
			}
		}
	}
	if step.Before != step.After {
		p.Steps = append(p.Steps, step)
	}
}

func (p *Plan) removeOverrides(policy *Policy, there *Terms) {
	if there == nil {
		return
	}
	for _, o := range there.Overrides {
		if o.TTLMs < 0 && !policy.overrides(o.Key) {
			words := []string{"OVERRIDE", policy.Name, o.Key, "NONE"}
			p.Extra = append(p.Extra, Step{policy.Name, words, overrideText(policy.Name, o.Key, o.Limits), ""})
		}
	}
}
