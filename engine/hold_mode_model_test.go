package engine_test

import (
	"github.com/weir-project/weir/engine"
)

// heldMode is how a policy counts requests. A policy that is disabled, and an override without limits, count nothing. A
// shadow binds no request, and counts what fits it.
type heldMode struct {
	disabled, shadow bool
	unlimited        map[string]bool // by the pattern of an override; false: it has the limits of the policy
}

// vague is the number of units left in the model's answer, if only shadows describe it. Some of the limits of a shadow
// may fit and others not, and the answer is of any of them.
const vague = -77

func (m *holdModel) mode(policy string) *heldMode {
	if m.modes == nil {
		m.modes = map[string]*heldMode{}
	}
	if m.modes[policy] == nil {
		m.modes[policy] = &heldMode{unlimited: map[string]bool{}}
	}
	return m.modes[policy]
}

// counts reports whether requests for a key are counted. An override of the key precedes a pattern.
func (x *heldMode) counts(key string) bool {
	unlimited, exact := x.unlimited[key]
	if !exact {
		unlimited = x.unlimited["*"]
	}
	return !x.disabled && !unlimited
}

// change changes the mode. It returns false for a change of limits.
func (x *heldMode) change(c *engine.PolicyChange) bool {
	switch c.Do {
	case engine.PolicyDisable, engine.PolicyEnable:
		x.disabled = c.Do == engine.PolicyDisable
	case engine.PolicyShadowOn, engine.PolicyShadowOff:
		x.shadow = c.Do == engine.PolicyShadowOn
	case engine.PolicyOverride:
		o := &c.Terms.Overrides[0]
		x.unlimited[o.Pattern] = len(o.Limits) == 0
	case engine.PolicyUnoverride:
		delete(x.unlimited, c.Terms.Overrides[0].Pattern)
	default:
		x.disabled, x.shadow = false, false
		return false
	}
	return true
}

// heldGroup is the limiters of one policy for one key that count requests.
type heldGroup struct {
	limiters []*heldLimiter
	shadow   bool
}

func (m *holdModel) groupsOf(nowNs int64, pairs []engine.Pair) (groups []heldGroup) {
	for _, p := range pairs {
		if x := m.mode(string(p.Policy)); x.counts(string(p.Key)) {
			groups = append(groups, heldGroup{m.limitersOf(nowNs, []engine.Pair{p}), x.shadow})
		}
	}
	return groups
}

// binding returns the limiters that can deny a request.
func binding(groups []heldGroup) (list []*heldLimiter) {
	for _, g := range groups {
		if !g.shadow {
			list = append(list, g.limiters...)
		}
	}
	return list
}

// remaining returns the units left that an answer about some pairs shows.
func (m *holdModel) remaining(nowNs int64, pairs []engine.Pair) int64 {
	groups, first := m.groupsOf(nowNs, pairs), string(pairs[0].Policy)
	switch bound := binding(groups); {
	case len(bound) > 0:
		return least(bound)
	case len(groups) > 0:
		return vague
	case m.mode(first).disabled:
		return m.policies[first][0].Max
	}
	return engine.MaxUnits
}

// takeFunded takes what each alternative pays. A limiter that does not count an extension gives back nothing of the
// hold any more.
func (m *holdModel) takeFunded(nowNs int64, op *engine.Op, pay []int64, by string) {
	for i, a := range alternativesOf(op) {
		if pay[i] == 0 {
			continue
		}
		counted := map[*heldLimiter]bool{}
		for _, g := range m.groupsOf(nowNs, a.pairs) {
			if g.shadow && least(g.limiters) < pay[i] {
				continue
			}
			for _, l := range g.limiters {
				l.take(pay[i], by)
				counted[l] = true
			}
		}
		for _, l := range m.limitersOf(nowNs, a.pairs) {
			if !counted[l] {
				delete(l.parts, by)
			}
		}
	}
}
