package engine_test

import (
	"fmt"
	"path"
	"slices"

	"github.com/weir-project/weir/engine"
)

// policyModel is the simple model of checks. It has policies in a map. For a check it asks the limiters of the model
// one after the other, one for each limit and key.
//
// A change of a definition takes effect at once: the model visits every limiter of the policy at the instant of the
// change, and at the instant at which an override ends.
type policyModel struct {
	limiters *model
	policies map[string]engine.Policy
	offsets  map[string]int64 // the offset of the wall clock when an override was set, by policy and pattern
	nowNs    int64
	kinds    map[string]int // how often a limiter in use got another limit, by kind of change
}

func newPolicyModel() *policyModel {
	return &policyModel{newModel(60e9), map[string]engine.Policy{}, map[string]int64{}, 0, map[string]int{}}
}

// pass lets time pass, and ends the overrides that end until then.
func (m *policyModel) pass(at engine.Stamp) {
	for {
		endNs, of, offsetNs := engine.Never, "", int64(0)
		for name, p := range m.policies {
			for _, o := range p.Overrides {
				if o.UntilNs > m.nowNs && o.UntilNs <= at.NowNs && o.UntilNs < endNs {
					endNs, of, offsetNs = o.UntilNs, name, m.offsets[name+"|"+o.Pattern]
				}
			}
		}
		if endNs == engine.Never {
			m.nowNs = at.NowNs
			return
		}
		for name, p := range m.policies { // several overrides may end at one instant
			ends := slices.ContainsFunc(p.Overrides, func(o engine.Override) bool { return o.UntilNs == endNs })
			if name == of || ends {
				offsetNs := offsetNs
				for _, o := range p.Overrides {
					if o.UntilNs == endNs {
						offsetNs = m.offsets[name+"|"+o.Pattern]
					}
				}
				m.redefine(name, p, p, engine.Stamp{NowNs: endNs - 1},
					engine.Stamp{NowNs: endNs, WallOffsetNs: offsetNs})
			}
		}
		m.nowNs = endNs
	}
}

// redefine brings all limiters of a policy from one definition to the next: what was used stays used. A limiter of
// another algorithm starts empty. A key without limits keeps the usage that it has.
func (m *policyModel) redefine(name string, from, to engine.Policy, before, at engine.Stamp) {
	for key, k := range m.limiters.keys {
		policy, i, of, ok := engine.SplitName([]byte(key))
		if !ok || string(policy) != name || k.state.rule == nil {
			continue
		}
		was, is := m.usageLimits(before, from, string(of)), m.usageLimits(at, to, string(of))
		if i < len(was) && !k.state.rule.idle(at) {
			m.count(was[i], is, i)
		}
		switch {
		case i >= len(is) || k.state.rule.idle(at) || k.state.rule.algorithm() != is[i].Limit.Algorithm:
			k.state.rule = nil
		case i < len(was) && was[i].Limit == is[i].Limit && fmt.Sprint(was[i].Zone) == fmt.Sprint(is[i].Zone):
		default:
			k.state.rule = redefined(k.state.rule, at, is[i])
		}
	}
}

// count counts the change of a limit in use to the limit of a number, if it has one.
func (m *policyModel) count(was engine.PolicyLimit, is []engine.PolicyLimit, i int) {
	if i >= len(is) {
		m.kinds["removed"]++
		return
	}
	a, b := was.Limit, is[i].Limit
	add := func(kind string, changed bool) { m.kinds[kind] += int(one(changed)) }
	if a.Algorithm != b.Algorithm {
		m.kinds["other algorithm"]++
		return
	}
	rate := perNs1(a).Cmp(perNs1(b))
	add("raised", a.Max < b.Max)
	add("lowered", a.Max > b.Max)
	add("longer", a.WindowNs < b.WindowNs)
	add("shorter", a.WindowNs > b.WindowNs)
	add("faster", rate < 0)
	add("slower", rate > 0)
	add("other window or zone", a.Mode != b.Mode || fmt.Sprint(was.Zone) != fmt.Sprint(is[i].Zone))
}

func redefined(r rule, at engine.Stamp, l engine.PolicyLimit) rule {
	switch r := r.(type) {
	case tokens:
		return r.under(at, l.Limit)
	case queue:
		return r.under(at, l.Limit)
	case fixed:
		op := engine.Op{Limit: l.Limit}
		if l.Zone == nil {
			return r.under(at, &op)
		}
		op.Calendar = l.Zone.Window(at.NowNs+at.WallOffsetNs, l.Limit.Mode)
		r.limit = l.Limit
		r.startNs, r.endNs = newWindow(at, &op)
		return r
	case twoWindows:
		return r.under(at, l.Limit)
	case slidingLog:
		return r.under(at, l.Limit)
	case strikes: // a penalty that runs keeps its end
		return r.under(at, l.Limit)
	}
	panic("a policy has no such limit")
}

// do runs one operation.
func (m *policyModel) do(at engine.Stamp, op *engine.Op) engine.Decision {
	m.pass(at)
	switch op.Code {
	case engine.OpPolicy:
		return m.change(at, op)
	case engine.OpCheck:
		return m.check(at, op)
	case engine.OpForgive:
		return m.forgive(at, op)
	}
	return m.limiters.do(at, op)
}

func (m *policyModel) change(at engine.Stamp, op *engine.Op) engine.Decision {
	name, c := string(op.Key), op.Policy
	old, known := m.policies[name]
	if c.If && c.Version != old.Version {
		return engine.Decision{Status: engine.PolicyChanged}
	}
	if !known && c.Do == engine.PolicyDelete {
		return engine.Decision{}
	}
	if !known && c.Do != engine.PolicySet {
		return engine.Decision{Status: engine.UnknownPolicy}
	}
	if c.Do == engine.PolicyDelete {
		delete(m.policies, name)
		m.forget(name, 0)
		return engine.Decision{Allowed: 1}
	}
	next := old
	next.Overrides = nil
	for _, o := range old.Overrides {
		if o.UntilNs > at.NowNs &&
			(c.Terms == nil || len(c.Terms.Overrides) == 0 || c.Terms.Overrides[0].Pattern != o.Pattern) {
			next.Overrides = append(next.Overrides, o)
		}
	}
	switch c.Do {
	case engine.PolicySet:
		next.Limits, next.Shadow, next.Disabled, next.RetryNs, next.Reserved = c.Terms.Limits, c.Terms.Shadow,
			c.Terms.Disabled, c.Terms.RetryNs, c.Terms.Reserved
		next.Layout = c.Terms.Layout
		if c.Own {
			next.Owner = c.Terms.Owner
		}
	case engine.PolicyEnable, engine.PolicyDisable:
		next.Disabled = c.Do == engine.PolicyDisable
	case engine.PolicyShadowOn, engine.PolicyShadowOff:
		next.Shadow = c.Do == engine.PolicyShadowOn
	case engine.PolicyOverride:
		o := c.Terms.Overrides[0]
		if o.UntilNs = engine.Never; op.TTLNs > 0 {
			o.UntilNs = at.NowNs + op.TTLNs
		}
		next.Overrides = append(next.Overrides, o)
	}
	if known && fmt.Sprint(sortedOverrides(next), next.Limits, next.Shadow, next.Disabled, next.RetryNs,
		next.Reserved, next.Owner, next.Layout) ==
		fmt.Sprint(sortedOverrides(old), old.Limits, old.Shadow, old.Disabled, old.RetryNs, old.Reserved, old.Owner,
			old.Layout) {
		if c.Reset {
			m.forget(name, 0)
		}
		return engine.Decision{Allowed: one(c.Reset), Remaining: int64(old.Version)}
	}
	next.Version++
	m.policies[name] = next
	m.redefine(name, old, next, at, at)
	if c.Do == engine.PolicyOverride {
		pattern := c.Terms.Overrides[0].Pattern
		i := slices.IndexFunc(old.Overrides, func(o engine.Override) bool { return o.Pattern == pattern })
		if i < 0 || old.Overrides[i].UntilNs <= at.NowNs ||
			fmt.Sprint(old.Overrides[i].Limits) != fmt.Sprint(c.Terms.Overrides[0].Limits) {
			m.offsets[name+"|"+pattern] = at.WallOffsetNs
		}
	}
	if c.Reset {
		m.forget(name, 0)
	} else {
		m.forget(name, most(next))
	}
	return engine.Decision{Allowed: 1, Remaining: int64(next.Version)}
}

func sortedOverrides(p engine.Policy) map[string]string {
	by := map[string]string{}
	for _, o := range p.Overrides {
		by[o.Pattern] = fmt.Sprint(o)
	}
	return by
}

func most(p engine.Policy) int {
	n := len(p.Limits)
	for _, o := range p.Overrides {
		n = max(n, len(o.Limits))
	}
	return n
}

// forget drops the limiters of a policy, beginning with one of its limits.
func (m *policyModel) forget(policy string, from int) {
	for name, k := range m.limiters.keys {
		p, limit, _, ok := engine.SplitName([]byte(name))
		if ok && string(p) == policy && limit >= from {
			k.state.rule = nil
		}
	}
}

// forgive drops the strikes of policies for their keys.
func (m *policyModel) forgive(at engine.Stamp, op *engine.Op) (d engine.Decision) {
	pairs := append([]engine.Pair{{Policy: op.Text, Key: op.Key}}, op.Also...)
	for i, pair := range pairs {
		if _, known := m.policies[string(pair.Policy)]; !known {
			return engine.Decision{Status: engine.UnknownPolicy, Pair: uint8(i)}
		}
	}
	for _, pair := range pairs {
		for i := range engine.MaxPolicyLimits {
			k := m.limiters.keys[fmt.Sprintf("policy|%s|%d|%s", pair.Policy, i, pair.Key)]
			if k == nil {
				continue
			}
			if _, strikes := k.state.withoutIdle(at).rule.(strikes); strikes {
				k.state.rule = nil
				d.Allowed++
			}
		}
	}
	return d
}

// usageLimits returns the limits under which the usage of a key ages: overrides without limits do not count.
func (m *policyModel) usageLimits(at engine.Stamp, p engine.Policy, key string) []engine.PolicyLimit {
	limited := p
	limited.Overrides = nil
	for _, o := range p.Overrides {
		if len(o.Limits) > 0 {
			limited.Overrides = append(limited.Overrides, o)
		}
	}
	return m.limits(at, limited, key)
}

// limits returns the limits in force for a key.
func (m *policyModel) limits(at engine.Stamp, p engine.Policy, key string) []engine.PolicyLimit {
	best, limits := -1, p.Limits
	for _, o := range p.Overrides {
		matches, _ := path.Match(o.Pattern, key)
		weight := len(o.Pattern)
		if o.Pattern == key {
			weight = 1 << 20
		}
		if matches && o.UntilNs > at.NowNs && weight > best {
			best, limits = weight, o.Limits
		}
	}
	return limits
}

// bound is one limit of a check in the model.
type bound struct {
	policy      engine.Policy
	limit       engine.PolicyLimit
	name        string
	kept        int64
	pair, index int
	answer      engine.Decision
}

// ask takes from one limit.
func (m *policyModel) ask(at engine.Stamp, b *bound, cost int64, op *engine.Op, dry bool) engine.Decision {
	take := engine.Op{Key: []byte(b.name), Limit: b.limit.Limit, Cost: cost, Dry: dry}
	if !op.Partial {
		take.WaitNs = b.limit.WaitNs
	}
	if b.limit.Zone != nil {
		take.Calendar = b.limit.Zone.Window(at.NowNs+at.WallOffsetNs, b.limit.Limit.Mode)
	}
	return m.limiters.do(at, &take)
}

// bounds returns the limits of a check, and the answer if one of its policies is unknown or one of its keys is blocked.
func (m *policyModel) bounds(at engine.Stamp, op *engine.Op) (bounds []*bound, d engine.Decision, answered bool) {
	pairs := append([]engine.Pair{{Policy: op.Text, Key: op.Key}}, op.Also...)
	for i, pair := range pairs {
		p, known := m.policies[string(pair.Policy)]
		if !known {
			return nil, engine.Decision{Status: engine.UnknownPolicy, Pair: uint8(i)}, true
		}
		state := modelState{elsewhere: m.limiters.elsewhere(at, string(pair.Key), string(op.From))}
		if k := m.limiters.keys[string(pair.Key)]; k != nil {
			state.own.untilNs = k.state.own.untilNs
		}
		if state.blocked(at) {
			left := msUp(num(state.endsNs() - at.NowNs))
			if !answered || left > d.RetryMs {
				d = engine.Decision{RetryMs: left, ResetMs: left, Limit: p.Limits[0].Limit.Max, Pair: uint8(i),
					Part: engine.NoPart}
			}
			answered = true
		}
		if p.Disabled {
			continue
		}
		for j, l := range m.limits(at, p, string(pair.Key)) {
			b := &bound{policy: p, limit: l, pair: i, index: j,
				name: fmt.Sprintf("policy|%s|%d|%s", pair.Policy, j, pair.Key)}
			if !op.High && !b.strikes() {
				if b.kept = l.Limit.Max * p.Reserved / 1000; b.kept > 0 {
					b.limit.WaitNs = 0
				}
			}
			bounds = append(bounds, b)
		}
	}
	return bounds, d, answered
}

// costOf returns what a check asks of each limit.
func (m *policyModel) costOf(at engine.Stamp, op *engine.Op, bounds []*bound) int64 {
	cost := op.Cost
	if op.Partial && cost > 0 {
		for _, b := range bounds {
			if !b.policy.Shadow && !b.strikes() {
				cost = min(cost, m.ask(at, b, 0, op, true).Remaining-b.kept)
			}
		}
		cost = max(cost, 1)
	}
	return cost
}

// preview asks one limit for a cost and the units that it keeps, and takes nothing.
func (m *policyModel) preview(at engine.Stamp, b *bound, cost int64, op *engine.Op) {
	asked := cost
	if cost > 0 {
		asked += b.kept
	}
	if b.strikes() { // only a running penalty denies
		asked = 0
	}
	b.answer = m.ask(at, b, asked, op, true)
}

// copied returns a copy of the model, whose time may pass.
func (m *policyModel) copied() *policyModel {
	limiters := *m.limiters
	limiters.keys = map[string]*modelKey{}
	for name, k := range m.limiters.keys {
		limiters.keys[name] = &modelKey{state: k.state}
	}
	return &policyModel{&limiters, m.policies, m.offsets, m.nowNs, map[string]int{}}
}

// behindBlock completes the answer to a check on a blocked key with what the limits say when the block is over.
func (m *policyModel) behindBlock(at engine.Stamp, op *engine.Op, d engine.Decision) engine.Decision {
	left := d.RetryMs
	at.NowNs = max(at.NowNs, m.limiters.nowNs) + left*1e6
	m = m.copied()
	m.pass(at)
	bounds, _, _ := m.bounds(at, op)
	cost := m.costOf(at, op, bounds)
	for _, b := range bounds {
		if b.policy.Shadow {
			continue
		}
		if m.preview(at, b, cost, op); b.answer.Allowed == 0 {
			d.RetryMs = later(d.RetryMs, after(left, b.answer.RetryMs))
		}
		d.ResetMs = later(d.ResetMs, after(left, m.ask(at, b, 0, op, true).ResetMs))
	}
	if d.RetryMs >= 0 {
		p := m.policies[string(op.PairAt(int(d.Pair)).Policy)]
		d.ResetMs = later(d.ResetMs, d.RetryMs)
		d.RetryMs = max(d.RetryMs, msUp(num(p.RetryNs)))
	}
	return d
}

func (m *policyModel) check(at engine.Stamp, op *engine.Op) engine.Decision {
	bounds, d, answered := m.bounds(at, op)
	if answered && d.Status == engine.OK {
		d = m.behindBlock(at, op, d)
	}
	if answered {
		return d
	}
	cost := m.costOf(at, op, bounds)
	shadowFails, denied := map[int]bool{}, []*bound{}
	for _, b := range bounds {
		m.preview(at, b, cost, op)
		if b.answer.Allowed == 0 && b.limit.Limit.Strikes&engine.Extend != 0 && op.Cost > 0 {
			b.answer = m.ask(at, b, op.Cost, op, op.Dry) // the strike counts even if the check is denied
		}
		if b.answer.Allowed == 0 {
			if b.policy.Shadow {
				shadowFails[b.pair] = true
			} else {
				denied = append(denied, b)
			}
		}
	}
	if len(denied) > 0 {
		return lockedOut(bounds, m.denial(denied))
	}
	for _, b := range bounds {
		if !shadowFails[b.pair] {
			b.answer = m.ask(at, b, cost, op, op.Dry)
			if b.strikes() && b.answer.Allowed == 0 && !b.policy.Shadow {
				denied = append(denied, b)
			}
		}
	}
	if len(denied) > 0 { // strikes that began a penalty, although the check took units
		return lockedOut(bounds, m.denial(denied))
	}
	return lockedOut(bounds, m.admission(op, bounds, cost))
}

// lockedOut adds the pairs that were locked out to an answer.
func lockedOut(bounds []*bound, d engine.Decision) engine.Decision {
	d.Locked = 0
	for _, b := range bounds {
		if b.answer.Locked != 0 && !b.policy.Shadow {
			d.Locked |= 1 << b.pair
		}
	}
	return d
}

func (b *bound) strikes() bool { return b.limit.Limit.Algorithm == engine.Strike }

func (m *policyModel) denial(denied []*bound) engine.Decision {
	wait := func(b *bound) int64 {
		if b.answer.RetryMs < 0 {
			return 1 << 62
		}
		return max(b.answer.RetryMs, msUp(num(b.policy.RetryNs)))
	}
	binding := denied[0]
	for _, b := range denied {
		if wait(b) > wait(binding) {
			binding = b
		}
	}
	d := binding.decision()
	if d.Allowed = 0; d.RetryMs >= 0 {
		d.RetryMs = wait(binding)
	}
	return d
}

func (b *bound) decision() engine.Decision {
	d := b.answer
	d.Remaining, d.Pair, d.Part = max(d.Remaining-b.kept, 0), uint8(b.pair), uint8(b.index)
	return d
}

func (m *policyModel) admission(op *engine.Op, bounds []*bound, cost int64) engine.Decision {
	d := engine.Decision{Remaining: engine.MaxUnits, Limit: engine.MaxUnits, Part: engine.NoPart}
	if p := m.policies[string(op.Text)]; p.Disabled {
		d.Remaining, d.Limit = p.Limits[0].Limit.Max, p.Limits[0].Limit.Max
	}
	hold := int64(0)
	for _, shadow := range []bool{false, true} {
		if d.Part != engine.NoPart {
			break
		}
		for _, b := range bounds {
			if b.policy.Shadow != shadow {
				continue
			}
			if !shadow {
				hold = max(hold, b.answer.RetryMs)
			}
			if now := b.decision(); d.Part == engine.NoPart || now.Remaining < d.Remaining {
				d = now
			}
		}
	}
	d.Allowed, d.RetryMs = 1, hold
	if op.Partial {
		d.Allowed = cost
	}
	return d
}
