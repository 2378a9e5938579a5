package engine_test

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"

	"github.com/weir-project/weir/engine"
)

// holdModel is the simple model of holds. Every limiter is a list of taken units, with their hold and time. Returned
// units are removed from the list.
type holdModel struct {
	policies map[string][]engine.Limit
	limiters map[string]*heldLimiter
	holds    map[string]*heldHold
}

// heldUnits are units that one operation took from a limiter. For a bucket they are the part that has not drained.
type heldUnits struct {
	units *big.Rat
	by    string // the hold, or "" for none
	atNs  int64
}

type heldLimiter struct {
	limit engine.Limit
	list  []heldUnits // in the order of taking
	nowNs int64
	endNs int64 // the end of a window that begins with the first request
}

type heldHold struct {
	op           engine.Op
	answer       engine.Decision
	endsNs       int64
	forgetNs     int64
	phase        string
	actual, left int64
}

// pass advances a limiter to a time.
func (l *heldLimiter) pass(nowNs int64) {
	drained := times(perNs1(l.limit), num(nowNs-l.nowNs))
	startNs := l.windowStart(nowNs)
	l.nowNs = nowNs
	switch l.limit.Algorithm {
	case engine.TokenBucket, engine.LeakyBucket:
		for len(l.list) > 0 && drained.Sign() > 0 {
			d := drained
			if l.list[0].units.Cmp(d) <= 0 {
				d = l.list[0].units
				l.list = l.list[1:]
			} else {
				l.list[0].units = minus(l.list[0].units, d)
			}
			drained = minus(drained, d)
		}
	case engine.SlidingCounter:
		startNs -= l.limit.WindowNs
		fallthrough
	default:
		l.list = slices.DeleteFunc(l.list, func(x heldUnits) bool { return x.atNs < startNs })
	}
}

func perNs1(l engine.Limit) *big.Rat {
	if l.Rate.PerNs == 0 {
		return num(0)
	}
	return perNs(l.Rate)
}

// windowStart returns the first instant that still counts.
func (l *heldLimiter) windowStart(nowNs int64) int64 {
	switch {
	case l.limit.Algorithm == engine.SlidingLog:
		return nowNs - l.limit.WindowNs + 1
	case l.limit.Mode == engine.FromFirst && nowNs >= l.endNs:
		return nowNs
	case l.limit.Mode == engine.FromFirst:
		return l.endNs - l.limit.WindowNs
	case l.limit.Mode == engine.Forever:
		return 0
	}
	return nowNs - nowNs%max(l.limit.WindowNs, 1)
}

// used returns the units that count now.
func (l *heldLimiter) used() *big.Rat {
	sum := num(0)
	startNs := l.windowStart(l.nowNs)
	before := num(0)
	for _, x := range l.list {
		if l.limit.Algorithm == engine.SlidingCounter && x.atNs < startNs {
			before = plus(before, x.units)
			continue
		}
		sum = plus(sum, x.units)
	}
	return plus(sum, times(before, frac(startNs+max(l.limit.WindowNs, 1)-l.nowNs, max(l.limit.WindowNs, 1))))
}

func (l *heldLimiter) left() *big.Rat {
	most := l.limit.Max
	if l.limit.Algorithm == engine.LeakyBucket {
		most++
	}
	return minus(num(most), l.used())
}

func (l *heldLimiter) take(n int64, by string) {
	if n == 0 {
		return
	}
	if l.limit.Mode == engine.FromFirst && l.used().Sign() == 0 {
		l.endNs = l.nowNs + l.limit.WindowNs
	}
	l.list = append(l.list, heldUnits{num(n), by, l.nowNs})
}

// give gives back n units of a hold. The hold can then give back no more of the units that it took here.
func (l *heldLimiter) give(by string, n int64) {
	for i := range l.list {
		if x := &l.list[i]; x.by == by {
			x.units, x.by = positive(minus(x.units, num(n))), ""
		}
	}
	l.list = slices.DeleteFunc(l.list, func(x heldUnits) bool { return x.units.Sign() == 0 })
}

func (m *holdModel) limitersOf(nowNs int64, pairs []engine.Pair) (list []*heldLimiter) {
	for _, p := range pairs {
		for i, limit := range m.policies[string(p.Policy)] {
			name := fmt.Sprint(string(p.Policy), i, string(p.Key))
			l := m.limiters[name]
			if l == nil {
				l = &heldLimiter{limit: limit, nowNs: nowNs}
				m.limiters[name] = l
			}
			l.pass(nowNs)
			list = append(list, l)
		}
	}
	return list
}

func pairsOf(op *engine.Op) []engine.Pair {
	return append([]engine.Pair{{Policy: op.Text, Key: op.Key}}, op.Also...)
}

// endHolds returns the units of expired holds, one hold after another, each at its end.
func (m *holdModel) endHolds(nowNs int64) {
	ended := []*heldHold{}
	for id, x := range m.holds {
		if x.phase == "open" && x.endsNs <= nowNs {
			ended = append(ended, x)
		}
		if x.forgetNs <= nowNs {
			delete(m.holds, id)
		}
	}
	slices.SortFunc(ended, func(a, b *heldHold) int { return cmp.Compare(a.endsNs, b.endsNs) })
	for _, x := range ended {
		x.phase = "ended"
		for _, l := range m.limitersOf(x.endsNs, pairsOf(&x.op)) {
			l.give(string(x.op.ID), x.op.Cost)
		}
	}
}

func least(list []*heldLimiter) int64 {
	left := int64(engine.MaxUnits)
	for _, l := range list {
		left = min(left, whole(l.left()))
	}
	return left
}

// do runs one operation. For a denial it returns no numbers.
func (m *holdModel) do(at engine.Stamp, op *engine.Op) engine.Decision {
	m.endHolds(at.NowNs)
	switch op.Code {
	case engine.OpReserve, engine.OpCheck:
		return m.take(at.NowNs, op)
	case engine.OpCommit:
		return m.commit(at.NowNs, op)
	case engine.OpCancel:
		x := m.holds[string(op.Key)]
		if x == nil || x.phase != "open" {
			return engine.Decision{Allowed: one(x != nil && x.phase == "cancelled")}
		}
		for _, l := range m.limitersOf(at.NowNs, pairsOf(&x.op)) {
			l.give(string(op.Key), x.op.Cost)
		}
		x.phase, x.forgetNs = "cancelled", at.NowNs+metaLifetimeNs
		return engine.Decision{Allowed: 1}
	case engine.OpRefund, engine.OpReset:
		m.adjust(at.NowNs, op)
	case engine.OpPolicy:
		m.redefine(at.NowNs, op)
	}
	return engine.Decision{}
}

// redefine changes the limits of a policy, for all keys. What was used stays used, and what is held counts as used. A
// bucket is cut to its new size, unless it is in debt.
func (m *holdModel) redefine(nowNs int64, op *engine.Op) {
	name := string(op.Key)
	if op.Policy.Do != engine.PolicySet { // an override with the same limits
		return
	}
	limits := slices.Clone(m.policies[name])
	for i := range limits {
		limits[i] = op.Policy.Terms.Limits[i].Limit
	}
	m.policies[name] = limits
	for of, l := range m.limiters {
		for i := range limits {
			if of != fmt.Sprint(name, i, "k0") && of != fmt.Sprint(name, i, "k1") || l.limit == limits[i] {
				continue
			}
			l.pass(nowNs)
			used, debt := l.used(), positive(minus(num(0), l.left()))
			for k := range l.list {
				l.list[k].by = ""
			}
			l.limit = limits[i]
			if a := l.limit.Algorithm; a == engine.TokenBucket || a == engine.LeakyBucket {
				cut := positive(minus(minus(num(0), l.left()), debt)) // beyond the new size
				l.list = []heldUnits{{minus(used, cut), "", nowNs}}
			}
		}
	}
}

func (m *holdModel) take(nowNs int64, op *engine.Op) engine.Decision {
	id := string(op.ID)
	if x := m.holds[id]; op.Code == engine.OpReserve && x != nil {
		if fmt.Sprint(pairsOf(op), op.Cost, op.TTLNs) != fmt.Sprint(pairsOf(&x.op), x.op.Cost, x.op.TTLNs) {
			return engine.Decision{Status: engine.OtherTerms}
		}
		return x.answer
	}
	limiters := m.limitersOf(nowNs, pairsOf(op))
	for _, l := range limiters {
		if l.left().Cmp(num(op.Cost)) < 0 {
			return engine.Decision{}
		}
	}
	for _, l := range limiters {
		l.take(op.Cost, id)
	}
	d := engine.Decision{Allowed: 1, Remaining: least(limiters)}
	if op.Code == engine.OpReserve {
		endsNs := nowNs + op.TTLNs
		m.holds[id] = &heldHold{op: *op, answer: d, endsNs: endsNs, forgetNs: endsNs + metaLifetimeNs, phase: "open"}
	}
	return d
}

func (m *holdModel) commit(nowNs int64, op *engine.Op) engine.Decision {
	x := m.holds[string(op.Key)]
	if x == nil {
		return engine.Decision{Status: engine.NoHold}
	}
	if x.phase == "completed" {
		if x.actual != op.Cost {
			return engine.Decision{Status: engine.OtherTerms}
		}
		return engine.Decision{Allowed: 1, Remaining: x.left}
	}
	limiters, more := m.limitersOf(nowNs, pairsOf(&x.op)), op.Cost
	if x.phase == "open" {
		more = max(op.Cost-x.op.Cost, 0)
	}
	for _, l := range limiters {
		if x.phase == "open" {
			l.give(string(op.Key), max(x.op.Cost-op.Cost, 0))
		}
		l.take(more, "")
	}
	x.phase, x.actual, x.left, x.forgetNs = "completed", op.Cost, least(limiters), nowNs+metaLifetimeNs
	return engine.Decision{Allowed: 1, Remaining: x.left}
}

// adjust carries out an OpReset, or an OpRefund to a bucket. A refund removes the oldest units first.
func (m *holdModel) adjust(nowNs int64, op *engine.Op) {
	policy, limit, key, _ := engine.SplitName(op.Key)
	m.limitersOf(nowNs, []engine.Pair{{Policy: policy, Key: key}})
	l := m.limiters[fmt.Sprint(string(policy), limit, string(key))]
	if op.Code == engine.OpReset {
		l.list = nil
		return
	}
	given := num(op.Cost)
	for len(l.list) > 0 && given.Sign() > 0 {
		x := &l.list[0]
		if x.units.Cmp(given) > 0 {
			x.units = minus(x.units, given)
			return
		}
		given = minus(given, x.units)
		l.list = l.list[1:]
	}
}
