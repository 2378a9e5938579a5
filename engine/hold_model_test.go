package engine_test

import (
	"cmp"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
)

// holdModel is the naive counterpart of holds: every limiter is a list of what was
// taken, by whom and when, and giving back takes things out of the list.
type holdModel struct {
	policies map[string][]engine.Limit
	limiters map[string]*heldLimiter
	holds    map[string]*heldHold
}

// heldUnits is units in a limiter: what is left of them in a bucket's queue.
type heldUnits struct {
	units *big.Rat
	by    string // the hold, if one has them
	atNs  int64
}

type heldLimiter struct {
	limit engine.Limit
	list  []heldUnits // in the order in which they were taken
	nowNs int64
	endNs int64 // of a window from the first request
}

type heldHold struct {
	op           engine.Op
	answer       engine.Decision
	endsNs       int64
	forgetNs     int64
	phase        string
	actual, left int64
}

// pass brings a limiter up to a time.
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

// windowStart is the first instant that counts at a time.
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

// used is what counts now.
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

// give takes units of a hold out, which has no claim on the rest any more.
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

// endHolds gives back what ended by a time, hold by hold, each at its end.
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

// do carries out one operation. Of a denial it says no more than that it is one.
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
		m.settle(at.NowNs, op)
	}
	return engine.Decision{}
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
	if x.phase == "settled" {
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
	x.phase, x.actual, x.left, x.forgetNs = "settled", op.Cost, least(limiters), nowNs+metaLifetimeNs
	return engine.Decision{Allowed: 1, Remaining: x.left}
}

// settle resets a limiter, or refunds to a bucket: what is next to be paid for.
func (m *holdModel) settle(nowNs int64, op *engine.Op) {
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

// holdTraffic makes traffic of holds over a few keys and ids.
type holdTraffic struct {
	*rand.Rand
	at engine.Stamp
	n  int
	// any says to refund to all limiters; the model knows it of buckets only.
	any bool
}

var modelPolicies = map[string][]engine.Limit{
	"token":   {{Algorithm: engine.TokenBucket, Rate: engine.Rate{Units: 7, PerNs: 1e9}, Max: 30}},
	"leaky":   {{Algorithm: engine.LeakyBucket, Rate: engine.Rate{Units: 11, PerNs: 3e9}, Max: 20}},
	"fixed":   {{Algorithm: engine.FixedWindow, WindowNs: 3e9, Max: 30}},
	"first":   {{Algorithm: engine.FixedWindow, Mode: engine.FromFirst, WindowNs: 2e9, Max: 30}},
	"log":     {{Algorithm: engine.SlidingLog, WindowNs: 4e9, Max: 30}},
	"counter": {{Algorithm: engine.SlidingCounter, WindowNs: 2e9, Max: 30}},
	"several": {
		{Algorithm: engine.TokenBucket, Rate: engine.Rate{Units: 5, PerNs: 1e9}, Max: 25},
		{Algorithm: engine.FixedWindow, WindowNs: 5e9, Max: 60}, {Algorithm: engine.SlidingLog, WindowNs: 7e9, Max: 70},
	},
}

var modelNames = []string{"token", "leaky", "fixed", "first", "log", "counter", "several"}

func (g *holdTraffic) pair() engine.Pair {
	return engine.Pair{Policy: []byte(modelNames[g.IntN(len(modelNames))]), Key: fmt.Append(nil, "k", g.IntN(2))}
}

func (g *holdTraffic) id() []byte { return fmt.Append(nil, "id", g.IntN(1+g.n/4)%7+g.n/60*7) }

func (g *holdTraffic) next() engine.Op {
	g.n++
	switch n := g.IntN(20); {
	case n < 4:
		return engine.Op{Code: engine.OpCommit, Key: g.id(), Cost: g.Int64N(20)}
	case n < 6:
		return engine.Op{Code: engine.OpCancel, Key: g.id(), Cost: 1}
	case n < 7:
		p := g.pair()
		if g.any && g.IntN(3) > 0 {
			return engine.Op{Code: engine.OpRefund, Key: fmt.Appendf(nil, "policy|%s|0|%s", p.Policy, p.Key), Cost: 1 + g.Int64N(19)}
		}
		if g.IntN(3) > 0 || string(p.Policy) == "several" {
			return engine.Op{Code: engine.OpReset, Key: fmt.Appendf(nil, "policy|%s|0|%s", p.Policy, p.Key), Cost: 1}
		}
		return engine.Op{Code: engine.OpRefund, Key: fmt.Appendf(nil, "policy|token|0|%s", p.Key), Cost: 1 + g.Int64N(9)}
	}
	p := g.pair()
	op := engine.Op{Code: engine.OpCheck, Text: p.Policy, Key: p.Key, Cost: g.Int64N(7)}
	for range g.IntN(3) {
		p := g.pair()
		if !slices.ContainsFunc(pairsOf(&op), func(o engine.Pair) bool { return fmt.Sprint(o) == fmt.Sprint(p) }) {
			op.Also = append(op.Also, p)
		}
	}
	if g.IntN(5) > 0 {
		op.Code, op.ID, op.Cost, op.TTLNs = engine.OpReserve, g.id(), 1+g.Int64N(20), 1+g.Int64N(1<<(20+g.IntN(13)))
	}
	return op
}

func (g *holdTraffic) pass() {
	if g.IntN(2) == 0 {
		g.at.NowNs += g.Int64N(1 << (10 + g.IntN(20)))
	}
	if g.IntN(100) == 0 {
		g.at.NowNs += g.Int64N(9e9)
	}
}

func setModelPolicies(table *engine.Table, at engine.Stamp) {
	for _, name := range modelNames {
		p := engine.Policy{}
		for _, l := range modelPolicies[name] {
			p.Limits = append(p.Limits, engine.PolicyLimit{Limit: l})
		}
		decideAt(table, at, setPolicy(name, p))
	}
}

// TestHoldsAreAsTheModelSays: whatever the order of holding, settling, ending, taking,
// refunding and resetting, each answer is that of the lists.
func TestHoldsAreAsTheModelSays(t *testing.T) {
	skipUnderRace(t)
	reserved, ended := 0, 0
	for seed := range uint64(20) {
		g := &holdTraffic{Rand: seeded(seed), at: engine.Stamp{NowNs: 1e18 + 7}}
		m := &holdModel{modelPolicies, map[string]*heldLimiter{}, map[string]*heldHold{}}
		table := metaTable(8)
		setModelPolicies(table, g.at)
		for i := range 3000 {
			op := g.next()
			want, got := m.do(g.at, &op), decideAt(table, g.at, op)
			if op.Code == engine.OpRefund || op.Code == engine.OpReset {
				continue
			}
			got = engine.Decision{Status: got.Status, Allowed: got.Allowed, Remaining: got.Remaining * one(got.Allowed > 0)}
			require.Equal(t, want, got, "seed %d, operation %d: %s id %s ttl %d", seed, i, describeCheck(&op), op.ID, op.TTLNs)
			reserved += int(one(op.Code == engine.OpReserve && got.Allowed > 0))
			ended += int(one(op.Code == engine.OpCommit && got.Allowed > 0))
			g.pass()
		}
	}
	require.Greater(t, reserved, 1000)
	require.Greater(t, ended, 1000)
}

// TestReplicasAgreeOnHolds: tables of other shapes, that collect, are looked at ahead of
// time or are restarted, decide alike and come to the same state.
func TestReplicasAgreeOnHolds(t *testing.T) {
	for seed := range uint64(16 / min(raceFactor, 8)) {
		g := &holdTraffic{Rand: seeded(seed), at: engine.Stamp{NowNs: 1e18 + 7}, any: true}
		replicas := replicasOf(t, seed)
		for _, r := range replicas {
			setModelPolicies(r.table, g.at)
		}
		for range 150 {
			b := block{at: g.at}
			for range 1 + g.IntN(20) {
				b.ops = append(b.ops, g.next())
			}
			requireAlike(t, replicas, b)
			g.pass()
		}
	}
}
