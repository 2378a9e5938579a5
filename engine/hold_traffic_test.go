package engine_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/race"
)

// holdTraffic makes operations on holds over a few keys and ids.
type holdTraffic struct {
	*rand.Rand
	at engine.Stamp
	n  int
	// any also refunds to limiters other than buckets, which the model does not support.
	any bool
	// changes also changes the limits of policies, and gives keys overrides with the limits that they have.
	changes map[string][]engine.Limit
	queued  []engine.Op
	// extended is how often each hold was extended. If it is nil, extensions have any numbers.
	extended map[string]int64
	policies map[string][]engine.Limit
	// window is among how many holds operations choose, on one key of each policy. If it is 0, there are few.
	window int
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

var modelRecords = map[string]bool{"token": true, "fixed": true, "several": true}

var modelNames = []string{"token", "leaky", "fixed", "first", "log", "counter", "several"}

func (g *holdTraffic) pair() engine.Pair {
	keys := 2
	if g.window > 0 {
		keys = 1
	}
	return engine.Pair{Policy: []byte(modelNames[g.IntN(len(modelNames))]), Key: fmt.Append(nil, "k", g.IntN(keys))}
}

func (g *holdTraffic) id() []byte {
	if g.window > 0 {
		return fmt.Append(nil, "id", g.n-g.IntN(1+min(g.n, g.window)))
	}
	return fmt.Append(nil, "id", g.IntN(1+g.n/4)%7+g.n/60*7)
}

// rarely reports whether an operation that makes all holds of a limiter void may be next.
func (g *holdTraffic) rarely() bool { return g.window == 0 || g.IntN(50) == 0 }

// newID returns the id of the next hold, which is an earlier one now and then.
func (g *holdTraffic) newID() []byte {
	if g.window > 0 && g.IntN(20) > 0 {
		return fmt.Append(nil, "id", g.n)
	}
	return g.id()
}

// changeMode makes a policy count nothing, or bind nobody, or ends that.
func (g *holdTraffic) changeMode(name string) engine.Op {
	op := engine.Op{Code: engine.OpPolicy, Key: []byte(name), Policy: &engine.PolicyChange{
		Do: []engine.PolicyDo{engine.PolicyDisable, engine.PolicyEnable, engine.PolicyEnable, engine.PolicyShadowOn,
			engine.PolicyShadowOff, engine.PolicyShadowOff, engine.PolicyOverride, engine.PolicyUnoverride,
			engine.PolicyUnoverride}[g.IntN(9)]}}
	if op.Policy.Do == engine.PolicyOverride || op.Policy.Do == engine.PolicyUnoverride {
		op.Policy.Terms = &engine.Policy{Overrides: []engine.Override{
			{Pattern: []string{"k0", "*"}[g.IntN(2)], UntilNs: engine.Never}}}
	}
	return op
}

// change changes some limits of a policy, or queues an override with the same limits and its end.
func (g *holdTraffic) change() engine.Op {
	name := modelNames[g.IntN(len(modelNames))]
	if g.IntN(2) == 0 {
		return g.changeMode(name)
	}
	limits := slices.Clone(g.changes[name])
	same := g.IntN(3) == 0
	terms := func() (list []engine.PolicyLimit) {
		for _, l := range limits {
			list = append(list, engine.PolicyLimit{Limit: l})
		}
		return list
	}
	op := engine.Op{Code: engine.OpPolicy, Key: []byte(name), Policy: &engine.PolicyChange{}}
	if same {
		o := engine.Override{Pattern: []string{"k0", "*"}[g.IntN(2)], UntilNs: engine.Never, Limits: terms()}
		op.Policy.Do, op.Policy.Terms = engine.PolicyOverride, &engine.Policy{Overrides: []engine.Override{o}}
		end := *op.Policy
		end.Do = engine.PolicyUnoverride
		g.queued = append(g.queued, engine.Op{Code: engine.OpPolicy, Key: op.Key, Policy: &end})
		return op
	}
	for i := range limits {
		if limits[i] = g.policies[name][i]; g.IntN(2) == 0 {
			continue
		}
		limits[i].Max = limits[i].Max/2 + g.Int64N(2*limits[i].Max)
		if limits[i].Rate.Units > 0 {
			limits[i].Rate.Units = 1 + g.Int64N(2*limits[i].Rate.Units)
		}
		if limits[i].Algorithm == engine.SlidingLog && g.IntN(2) == 0 {
			limits[i].WindowNs = 1 + g.Int64N(9e9)
		}
	}
	g.changes[name] = limits
	op.Policy.Do, op.Policy.Terms = engine.PolicySet, &engine.Policy{Limits: terms(), Record: g.IntN(2) == 0}
	return op
}

func (g *holdTraffic) next() engine.Op {
	g.n++
	if len(g.queued) > 0 {
		op := g.queued[0]
		g.queued = g.queued[1:]
		return op
	}
	if g.changes != nil && g.IntN(15) == 0 && g.rarely() {
		return g.change()
	}
	switch n := g.IntN(20); {
	case n < 4:
		return engine.Op{Code: engine.OpCommit, Key: g.id(), Cost: g.Int64N(30), Keep: g.IntN(3) == 0}
	case n == 7, n == 8, n == 9:
		op := engine.Op{Code: engine.OpExtend, Key: g.id(), Cost: g.Int64N(9), Partial: g.IntN(3) == 0}
		next := g.extended[string(op.Key)] + 1
		if g.extended == nil || g.IntN(8) == 0 {
			next = 1 + g.Int64N(4)
		}
		op.ID = engine.ExtensionID(next)
		if g.IntN(3) == 0 {
			op.TTLNs = 1 + g.Int64N(1<<(20+g.IntN(13)))
		}
		op.Bind()
		return op
	case n == 5 && g.IntN(2) == 0:
		return engine.Op{Code: engine.OpEnd, Key: g.id(), Cost: 1}
	case n < 6:
		return engine.Op{Code: engine.OpCancel, Key: g.id(), Cost: 1}
	case n < 7 && g.rarely():
		p := g.pair()
		if g.any && g.IntN(3) > 0 {
			return engine.Op{Code: engine.OpRefund, Key: fmt.Appendf(nil, "policy|%s|0|%s", p.Policy, p.Key),
				Cost: 1 + g.Int64N(19)}
		}
		if g.IntN(3) > 0 || string(p.Policy) == "several" {
			return engine.Op{Code: engine.OpReset, Key: fmt.Appendf(nil, "policy|%s|0|%s", p.Policy, p.Key), Cost: 1}
		}
		return engine.Op{Code: engine.OpRefund, Key: fmt.Appendf(nil, "policy|token|0|%s", p.Key),
			Cost: 1 + g.Int64N(9)}
	}
	p := g.pair()
	op := engine.Op{Code: engine.OpCheck, Text: p.Policy, Key: p.Key, Cost: g.Int64N(7)}
	for range g.IntN(5) {
		p := g.pair()
		if !slices.ContainsFunc(pairsOf(&op), func(o engine.Pair) bool { return fmt.Sprint(o) == fmt.Sprint(p) }) {
			op.Also = append(op.Also, p)
		}
	}
	for i := range op.Also {
		if g.IntN(2) == 0 && op.Else.Len() < engine.MaxAlternatives {
			op.Else |= 1 << (i + 1)
		}
	}
	if op.Else != 0 && g.IntN(3) > 0 {
		op.Else |= engine.Split
	}
	op.Partial = op.Else != 0 && op.Cost > 0 && g.IntN(4) == 0
	if g.IntN(5) > 0 {
		op.Partial = false
		op.Code, op.ID, op.Cost, op.TTLNs = engine.OpReserve, g.newID(), 1+g.Int64N(20), 1+g.Int64N(1<<(20+g.IntN(13)))
		if op.Keep = g.IntN(4) == 0; g.window > 0 {
			op.TTLNs = 1 + g.Int64N(1<<(20+g.IntN(16)))
		}
	}
	return op
}

func (g *holdTraffic) pass() {
	slower, seldom := int64(1), 100
	if g.window > 0 {
		slower, seldom = manyFactor, 100+10*g.window
	}
	if g.IntN(2) == 0 {
		g.at.NowNs += g.Int64N(1<<(10+g.IntN(20))) / slower
	}
	if g.IntN(seldom) == 0 {
		g.at.NowNs += g.Int64N(9e9)
	}
}

func (g *holdTraffic) setPolicies(table *engine.Table) {
	for _, name := range modelNames {
		p := engine.Policy{Record: modelRecords[name]}
		for _, l := range g.policies[name] {
			p.Limits = append(p.Limits, engine.PolicyLimit{Limit: l})
		}
		decideAt(table, g.at, setPolicy(name, p))
	}
}

var holdRuns = flag.Int("hold-runs", 20, "how many runs of 3000 operations TestHoldsAreAsTheModelSays makes")

// outcomes counts operations that did something, and those that no limit or only a shadow decided.
type outcomes struct{ reserved, committed, extended, divided, expired, unbound int }

// compare carries out one operation, compares its answer with the model's, and lets time pass.
func (g *holdTraffic) compare(t *testing.T, m *holdModel, table *engine.Table, i int) (n outcomes) {
	op := g.next()
	want, got := m.do(g.at, &op), decideAt(table, g.at, op)
	g.looks(t, m, table)
	n.expired = m.compareEvents(t, table)
	if op.Code == engine.OpRefund || op.Code == engine.OpReset || op.Code == engine.OpPolicy {
		return n
	}
	got = engine.Decision{Status: got.Status, Allowed: got.Allowed, Remaining: got.Remaining * one(got.Allowed > 0),
		Value: got.Value}
	n.unbound = int(one(want.Remaining == vague || want.Remaining == engine.MaxUnits))
	if want.Remaining == vague {
		want.Remaining = got.Remaining
	}
	require.Equal(t, want, got, "operation %d: %s id %s ttl %d", i, describeCheck(&op), op.ID, op.TTLNs)
	n.divided = int(one(paidBySeveral(&got)))
	n.reserved = int(one(op.Code == engine.OpReserve && got.Allowed > 0))
	n.committed = int(one(op.Code == engine.OpCommit && got.Allowed > 0))
	if op.Code == engine.OpExtend && got.Allowed > 0 && op.Extension() > g.extended[string(op.Key)] {
		g.extended[string(op.Key)] = op.Extension()
		n.extended++
	}
	g.pass()
	return n
}

// TestHoldsAreAsTheModelSays checks every answer against the model, in random orders of holding, settling, expiring,
// taking, refunding and resetting.
func TestHoldsAreAsTheModelSays(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	var all outcomes
	for seed := range uint64(*holdRuns) {
		g := &holdTraffic{Rand: seeded(seed), at: engine.Stamp{NowNs: 1e18 + 7}, extended: map[string]int64{},
			policies: modelPolicies}
		if seed%2 == 1 {
			g.changes = maps.Clone(modelPolicies)
		}
		m := newHoldModel(modelPolicies)
		table := metaTable(8)
		g.setPolicies(table)
		for i := range 3000 {
			n := g.compare(t, m, table, i)
			all.reserved, all.committed = all.reserved+n.reserved, all.committed+n.committed
			all.extended, all.divided = all.extended+n.extended, all.divided+n.divided
			all.expired += n.expired
			all.unbound += n.unbound
		}
	}
	require.Greater(t, all.reserved, 1000)
	require.Greater(t, all.committed, 1000)
	require.Greater(t, all.extended, 500)
	require.Greater(t, all.divided, 500)
	require.Greater(t, all.expired, 500)
	require.Greater(t, all.unbound, 500)
}

// paidBySeveral reports whether several alternatives paid.
func paidBySeveral(d *engine.Decision) bool {
	total, shares := d.Paid()
	return len(shares) > 0 && !slices.ContainsFunc(shares, func(s engine.Share) bool { return s.Units == total })
}

// looks compares what a read shows of a limiter with the model, now and as of a later time.
func (g *holdTraffic) looks(t *testing.T, m *holdModel, table *engine.Table) {
	p, limit := g.pair(), 0
	limiters := m.limitersOf(g.at.NowNs, []engine.Pair{p})
	if len(limiters) > 1 {
		limit = g.IntN(len(limiters))
	}
	left, used := whole(limiters[limit].left()), wholeUp(limiters[limit].used())
	info, found := table.Inspect(g.at, fmt.Appendf(nil, "policy|%s|%d|%s", p.Policy, limit, p.Key))
	require.Equal(t, used > 0, found, "%s %d %s", p.Policy, limit, p.Key)
	if found {
		require.Equal(t, [2]int64{left, used}, [2]int64{info.Remaining, info.Used}, "%s %d %s", p.Policy, limit, p.Key)
	}
}

// TestReplicasAgreeOnHolds checks that tables with other shapes decide alike and end in the same state. Some collect,
// are read ahead of time, or are restarted.
func TestReplicasAgreeOnHolds(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	for seed := range uint64(16) {
		g := &holdTraffic{Rand: seeded(seed), at: engine.Stamp{NowNs: 1e18 + 7}, any: true, policies: modelPolicies}
		if seed%2 == 1 {
			g.changes = maps.Clone(modelPolicies)
		}
		replicas := replicasOf(t, seed)
		for _, r := range replicas {
			g.setPolicies(r.table)
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
