package engine_test

import (
	"fmt"
	"math/rand/v2"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
)

// policyModel is the naive counterpart of checks: policies in a map, and for each
// limit and key a limiter of the naive model, asked one after the other.
type policyModel struct {
	limiters *model
	policies map[string]engine.Policy
}

func newPolicyModel() *policyModel {
	return &policyModel{newModel(60e9), map[string]engine.Policy{}}
}

// do carries out one operation.
func (m *policyModel) do(at engine.Stamp, op *engine.Op) engine.Decision {
	switch op.Code {
	case engine.OpPolicy:
		return m.change(at, op)
	case engine.OpCheck:
		return m.check(at, op)
	}
	return m.limiters.do(at, op)
}

func (m *policyModel) change(at engine.Stamp, op *engine.Op) engine.Decision {
	name, c := string(op.Key), op.Policy
	old, known := m.policies[name]
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
		if o.UntilNs > at.NowNs && (c.Terms == nil || len(c.Terms.Overrides) == 0 || c.Terms.Overrides[0].Pattern != o.Pattern) {
			next.Overrides = append(next.Overrides, o)
		}
	}
	switch c.Do {
	case engine.PolicySet:
		next.Limits, next.Shadow, next.Disabled, next.RetryNs, next.Reserved = c.Terms.Limits, c.Terms.Shadow, c.Terms.Disabled, c.Terms.RetryNs, c.Terms.Reserved
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
	if known && fmt.Sprint(sortedOverrides(next), next.Limits, next.Shadow, next.Disabled, next.RetryNs, next.Reserved) ==
		fmt.Sprint(sortedOverrides(old), old.Limits, old.Shadow, old.Disabled, old.RetryNs, old.Reserved) {
		if c.Reset {
			m.forget(name, 0)
		}
		return engine.Decision{Allowed: one(c.Reset), Remaining: int64(old.Version)}
	}
	next.Version++
	m.policies[name] = next
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

// forget drops the limiters of a policy from one of its limits on.
func (m *policyModel) forget(policy string, from int) {
	for name, k := range m.limiters.keys {
		p, limit, _, ok := engine.SplitName([]byte(name))
		if ok && string(p) == policy && limit >= from {
			k.state.rule = nil
		}
	}
}

// limits are those in force for a key.
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

// ask is a take of one limit; a limiter of another algorithm is none.
func (m *policyModel) ask(at engine.Stamp, b *bound, cost int64, op *engine.Op, dry bool) engine.Decision {
	k := m.limiters.keys[b.name]
	if k != nil {
		if own := k.state.settled(at); own.algorithm() != engine.NoAlgorithm && own.algorithm() != b.limit.Limit.Algorithm {
			before := k.state.rule
			k.state.rule = nil
			defer func() {
				if k.state.rule == nil { // nothing was taken
					k.state.rule = before
				}
			}()
		}
	}
	take := engine.Op{Key: []byte(b.name), Limit: b.limit.Limit, Cost: cost, Dry: dry}
	if !op.Partial {
		take.WaitNs = b.limit.WaitNs
	}
	return m.limiters.do(at, &take)
}

func (m *policyModel) check(at engine.Stamp, op *engine.Op) engine.Decision {
	var bounds []*bound
	blocked := engine.Decision{}
	anyBlocked := false
	pairs := append([]engine.Pair{{Policy: op.Text, Key: op.Key}}, op.Also...)
	for i, pair := range pairs {
		p, known := m.policies[string(pair.Policy)]
		if !known {
			return engine.Decision{Status: engine.UnknownPolicy, Pair: uint8(i)}
		}
		if k := m.limiters.keys[string(pair.Key)]; k != nil && k.state.blocked(at) {
			left := msUp(num(k.state.blockedUntilNs - at.NowNs))
			if !anyBlocked || left > blocked.RetryMs {
				blocked = engine.Decision{RetryMs: left, ResetMs: left, Limit: p.Limits[0].Limit.Max, Pair: uint8(i), Part: engine.NoPart}
			}
			anyBlocked = true
		}
		if p.Disabled {
			continue
		}
		for j, l := range m.limits(at, p, string(pair.Key)) {
			b := &bound{policy: p, limit: l, pair: i, index: j, name: fmt.Sprintf("policy|%s|%d|%s", pair.Policy, j, pair.Key)}
			if !op.High && !b.strikes() {
				b.kept = l.Limit.Max * p.Reserved / 1000
			}
			bounds = append(bounds, b)
		}
	}
	if anyBlocked {
		return blocked
	}
	cost := op.Cost
	if op.Partial && cost > 0 {
		for _, b := range bounds {
			if !b.policy.Shadow && !b.strikes() {
				cost = min(cost, m.ask(at, b, 0, op, true).Remaining-b.kept)
			}
		}
		cost = max(cost, 1)
	}
	shadowFails, denied := map[int]bool{}, []*bound{}
	for _, b := range bounds {
		asked := cost
		if cost > 0 {
			asked += b.kept
		}
		if b.strikes() { // held up only by a penalty that runs
			asked = 0
		}
		b.answer = m.ask(at, b, asked, op, true)
		if b.answer.Allowed == 0 {
			if b.policy.Shadow {
				shadowFails[b.pair] = true
			} else {
				denied = append(denied, b)
				if !op.Dry && op.Cost > 0 {
					m.ask(at, b, asked, op, false) // may put the limit in force
				}
			}
		}
	}
	if len(denied) > 0 {
		return m.denial(denied)
	}
	for _, b := range bounds {
		if !shadowFails[b.pair] {
			b.answer = m.ask(at, b, cost, op, op.Dry)
			if b.strikes() && b.answer.Allowed == 0 && !b.policy.Shadow {
				denied = append(denied, b)
			}
		}
	}
	if len(denied) > 0 { // with what was taken
		return m.denial(denied)
	}
	return m.admission(op, bounds, cost, pairs)
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

func (m *policyModel) admission(op *engine.Op, bounds []*bound, cost int64, pairs []engine.Pair) engine.Decision {
	d := engine.Decision{Remaining: engine.MaxUnits, Limit: engine.MaxUnits, Part: engine.NoPart}
	if p := m.policies[string(pairs[0].Policy)]; p.Disabled {
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

// policyTraffic draws operations on a few policies and keys, so that most meet.
type policyTraffic struct {
	*rand.Rand
	at engine.Stamp
}

func (g *policyTraffic) limit() (l engine.PolicyLimit) {
	l.Limit.Max = 1 + g.Int64N(8)
	window := (1 + g.Int64N(5)) * 1e9
	switch g.IntN(8) {
	case 0, 1:
		l.Limit.Algorithm, l.Limit.Rate = engine.TokenBucket, engine.Rate{Units: 1, PerNs: window / 4}
		if g.IntN(4) == 0 {
			l.WaitNs = 1e9
		}
	case 2:
		l.Limit.Algorithm, l.Limit.Rate = engine.LeakyBucket, engine.Rate{Units: 2, PerNs: window}
	case 3:
		l.Limit.Algorithm, l.Limit.WindowNs, l.Limit.Mode = engine.FixedWindow, window, engine.FromFirst
	case 4:
		l.Limit.Algorithm, l.Limit.WindowNs = engine.FixedWindow, window
	case 5:
		l.Limit.Algorithm, l.Limit.WindowNs = engine.SlidingLog, window
	case 6:
		l.Limit.Algorithm, l.Limit.WindowNs = engine.SlidingCounter, window
	case 7:
		steps := []engine.Step{{Threshold: 1 + g.Int64N(3), PenaltyNs: 5e8}, {Threshold: 4 + g.Int64N(6), PenaltyNs: window}}
		l.Limit = engine.Limit{Algorithm: engine.Strike, WindowNs: window, Steps: engine.MakeSteps(steps), Max: steps[1].Threshold}
	}
	return l
}

func (g *policyTraffic) limits(most int) (limits []engine.PolicyLimit) {
	for range 1 + g.IntN(most) {
		limits = append(limits, g.limit())
	}
	return limits
}

func (g *policyTraffic) key() []byte    { return fmt.Append(nil, "k", g.IntN(4)) }
func (g *policyTraffic) policy() []byte { return fmt.Append(nil, "p", g.IntN(4)) }

func (g *policyTraffic) next() engine.Op {
	switch n := g.IntN(40); {
	case n < 2:
		p := &engine.Policy{Limits: g.limits(3), Shadow: g.IntN(6) == 0, Disabled: g.IntN(8) == 0}
		if g.IntN(3) == 0 {
			p.Reserved = g.Int64N(1000)
		}
		if g.IntN(3) == 0 {
			p.RetryNs = g.Int64N(3e9)
		}
		return engine.Op{Code: engine.OpPolicy, Key: g.policy(), Policy: &engine.PolicyChange{Terms: p, Reset: g.IntN(4) == 0}}
	case n < 3:
		do := engine.PolicyDo(g.IntN(int(engine.PolicyShadowOff + 1)))
		if do == engine.PolicySet || do == engine.PolicyDelete && g.IntN(3) > 0 {
			do = engine.PolicyEnable
		}
		return engine.Op{Code: engine.OpPolicy, Key: g.policy(), Policy: &engine.PolicyChange{Do: do}}
	case n < 4:
		o := engine.Override{Pattern: []string{"k0", "k1", "k*", "*", "k[12]"}[g.IntN(5)], UntilNs: engine.Never}
		if g.IntN(3) > 0 {
			o.Limits = g.limits(3)
		}
		return engine.Op{Code: engine.OpPolicy, Key: g.policy(), TTLNs: g.Int64N(2) * 3e9, Policy: &engine.PolicyChange{
			Do: engine.PolicyOverride + engine.PolicyDo(g.IntN(2)), Terms: &engine.Policy{Overrides: []engine.Override{o}},
		}}
	case n < 5:
		name := fmt.Appendf(nil, "policy|%s|%d|%s", g.policy(), g.IntN(3), g.key())
		return engine.Op{Code: []engine.OpCode{engine.OpReset, engine.OpRefund}[g.IntN(2)], Key: name, Cost: 1 + g.Int64N(3)}
	case n < 6:
		return engine.Op{Code: []engine.OpCode{engine.OpBlock, engine.OpUnblock}[g.IntN(2)], Key: g.key(), TTLNs: 1e9}
	}
	op := engine.Op{Code: engine.OpCheck, Key: g.key(), Text: g.policy(), Cost: g.Int64N(4), Partial: g.IntN(4) == 0, High: g.IntN(3) == 0, Dry: g.IntN(10) == 0}
	if g.IntN(20) == 0 {
		op.ID = fmt.Append(nil, "id", g.IntN(5))
	}
	seen := map[string]bool{string(op.Text) + string(op.Key): true}
	for range g.IntN(3) {
		pair := engine.Pair{Policy: g.policy(), Key: g.key()}
		if name := string(pair.Policy) + string(pair.Key); !seen[name] {
			seen[name] = true
			op.Also = append(op.Also, pair)
		}
	}
	return op
}

func (g *policyTraffic) pass() {
	if g.IntN(3) == 0 {
		g.at.NowNs += g.Int64N(8) * 250e6
	}
}

// TestChecksAreAsTheModelSays: tables of one and of many shards answer each operation
// as the naive model, through changes of policies, and stay replicas of each other.
func TestChecksAreAsTheModelSays(t *testing.T) {
	skipUnderRace(t)
	for seed := range uint64(10) {
		g := &policyTraffic{Rand: seeded(seed), at: engine.Stamp{NowNs: 1e18, WallOffsetNs: 12345}}
		m := newPolicyModel()
		single, many := engine.NewTable(engine.Options{Shards: 1, TrackChanges: true}), engine.NewTable(engine.Options{Shards: 64})
		admitted, denied := 0, 0
		for i := range 4000 {
			op := g.next()
			if len(op.ID) > 0 {
				op.ID = nil // remembered answers have a test of their own
			}
			want := m.do(g.at, &op)
			var got, also [1]engine.Decision
			single.Decide(g.at, []engine.Op{op}, got[:])
			if i%2 == 0 {
				many.DecideAtomic(g.at, []engine.Op{op}, also[:])
			} else {
				many.Decide(g.at, []engine.Op{op}, also[:])
			}
			require.Equal(t, want, got[0], "seed %d, operation %d: %s", seed, i, describeCheck(&op))
			require.Equal(t, want, also[0], "seed %d, operation %d, many shards: %s", seed, i, describeCheck(&op))
			if op.Code == engine.OpCheck && want.Status == engine.OK && op.Cost > 0 {
				admitted += int(one(want.Allowed > 0))
				denied += int(one(want.Allowed == 0))
			}
			if i%500 == 0 {
				require.Equal(t, single.StateHash(g.at), many.StateHash(g.at), "seed %d, operation %d", seed, i)
			}
			g.pass()
		}
		require.Greater(t, admitted, 300)
		require.Greater(t, denied, 300)
	}
}

func describeCheck(op *engine.Op) string {
	var b strings.Builder
	fmt.Fprintf(&b, "code %d key %s text %s cost %d partial %v high %v dry %v", op.Code, op.Key, op.Text, op.Cost, op.Partial, op.High, op.Dry)
	for _, p := range op.Also {
		fmt.Fprintf(&b, " also %s %s", p.Policy, p.Key)
	}
	return b.String()
}
