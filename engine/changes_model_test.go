package engine_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/race"
)

// changeTraffic is policyTraffic in which definitions change more often than keys are asked for. Limits mostly keep
// their algorithm, windows last from a second to a year, and time passes in steps from a nanosecond to weeks.
type changeTraffic struct {
	policyTraffic
	algorithms map[string]int
	most       int // limits of a policy
}

var changeZones = []*engine.Zone{
	{Name: "UTC"},
	{Name: "North", Changes: []engine.ZoneChange{{OffsetSec: 3600}, {AtSec: 1_000_500_000, OffsetSec: 7200}}},
	{Name: "West", Changes: []engine.ZoneChange{{OffsetSec: -5 * 3600}}},
}

var changeWindows = []int64{1e9, 5e9, 60e9, 3600e9, 24 * 3600e9}

// limit returns a limit for a place in a policy. Most limits of a place have one algorithm.
func (g *changeTraffic) limit(place string) (l engine.PolicyLimit) {
	kind, known := g.algorithms[place]
	if !known || g.IntN(8) == 0 {
		kind = g.IntN(6)
		g.algorithms[place] = kind
	}
	window := changeWindows[g.IntN(len(changeWindows))]
	l.Limit.Max, l.Limit.WindowNs = 1+g.Int64N(12), window
	switch kind {
	case 0:
		l.Limit.Algorithm, l.Limit.WindowNs = engine.TokenBucket, 0
		l.Limit.Rate = engine.Rate{Units: 1 + g.Int64N(3), PerNs: window / (1 + g.Int64N(4))}
		if g.IntN(6) == 0 { // the state of such a bucket is longer
			l.Limit.Rate = engine.Rate{Units: 1<<32 + 1, PerNs: 24 * 3600e9}
		}
		if g.IntN(4) == 0 {
			l.WaitNs = window
		}
	case 1:
		l.Limit.Algorithm, l.Limit.WindowNs = engine.LeakyBucket, 0
		l.Limit.Rate = engine.Rate{Units: 1 + g.Int64N(3), PerNs: window}
	case 2:
		l.Limit.Algorithm, l.Limit.Mode = engine.FixedWindow, engine.WindowMode(g.IntN(int(engine.Forever)+1))
		if l.Limit.Mode >= engine.Day {
			l.Limit.WindowNs = 0
		}
		if l.Limit.Mode >= engine.Day && l.Limit.Mode <= engine.Year {
			l.Zone = changeZones[g.IntN(len(changeZones))]
		}
	case 3:
		l.Limit.Algorithm = engine.SlidingLog
	case 4:
		l.Limit.Algorithm = engine.SlidingCounter
	case 5:
		steps := []engine.Step{{Threshold: 1 + g.Int64N(4), PenaltyNs: window / 2, Delay: g.IntN(2) == 0},
			{Threshold: 5 + g.Int64N(6), PenaltyNs: window}}
		l.Limit.Algorithm, l.Limit.Strikes = engine.Strike, engine.StrikeMode(g.IntN(4))
		l.Limit.Steps, l.Limit.Max = engine.MakeSteps(steps), steps[1].Threshold
	}
	return l
}

func (g *changeTraffic) limits(policy []byte) (limits []engine.PolicyLimit) {
	for i := range 1 + g.IntN(g.most) {
		limits = append(limits, g.limit(fmt.Sprint(string(policy), i)))
	}
	return limits
}

func (g *changeTraffic) next() engine.Op {
	policy := g.policy()
	change := func(do engine.PolicyDo, terms *engine.Policy) engine.Op {
		return engine.Op{Code: engine.OpPolicy, Key: policy, Policy: &engine.PolicyChange{Do: do, Terms: terms}}
	}
	switch n := g.IntN(40); {
	case n < 5:
		p := &engine.Policy{Limits: g.limits(policy), Shadow: g.IntN(8) == 0, Disabled: g.IntN(8) == 0,
			Layout: []string{"", "a:{key}:{policy}", "b:{policy}:{key}"}[g.IntN(3)]}
		op := change(engine.PolicySet, p)
		op.Policy.Reset = g.IntN(20) == 0
		return op
	case n < 6:
		do := []engine.PolicyDo{engine.PolicyEnable, engine.PolicyDisable, engine.PolicyShadowOn,
			engine.PolicyShadowOff, engine.PolicyDelete}[g.IntN(5)]
		if do == engine.PolicyDelete && g.IntN(3) > 0 {
			do = engine.PolicyEnable
		}
		return change(do, nil)
	case n < 11:
		o := engine.Override{Pattern: []string{"k0", "k1", "k*", "*", "k[12]"}[g.IntN(5)], UntilNs: engine.Never}
		if g.IntN(5) > 0 {
			o.Limits = g.limits(policy)
		}
		do := engine.PolicyOverride + engine.PolicyDo(g.IntN(4)/3)
		op := change(do, &engine.Policy{Overrides: []engine.Override{o}})
		if g.IntN(3) > 0 {
			op.TTLNs = changeWindows[g.IntN(len(changeWindows))]
		}
		return op
	}
	for {
		if op := g.policyTraffic.next(); op.Code != engine.OpPolicy {
			return op
		}
	}
}

func (g *changeTraffic) pass() {
	switch g.IntN(12) {
	case 0, 1:
		g.at.NowNs += g.Int64N(3e9)
	case 2:
		g.at.NowNs += 1 + g.Int64N(3)
	case 3:
		g.at.NowNs += g.Int64N(2 * 3600e9)
	case 4:
		if g.IntN(6) == 0 {
			g.at.NowNs += g.Int64N(20 * 24 * 3600e9)
		}
	case 5:
		if g.IntN(40) == 0 {
			g.at.WallOffsetNs += g.Int64N(4e9) - 2e9
		}
	}
}

// changeOps is the default number of random operations of TestChangedDefinitions. WEIRTEST_CHANGE_OPS sets another.
const changeOps = 60_000

// TestChangedDefinitions compares decisions and reads with the model while definitions change: raised, lowered, longer,
// shorter, with another algorithm and back, for all keys and by overrides with and without an end; policies are
// disabled, shadowed, deleted and made again. In between, idle entries are collected, and the table is stored and
// loaded. The model changes all limiters at the time of a change, the engine each when it is next used.
func TestChangedDefinitions(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	ops, seed := fromEnv(t, "WEIRTEST_CHANGE_OPS", changeOps), uint64(fromEnv(t, "WEIRTEST_MODEL_SEED", 1))
	const episode = 2000
	kinds := map[string]int{}
	for i := range uint64(max(ops/episode, 1)) {
		for kind, n := range runChanges(t, seed<<32|i, episode) {
			kinds[kind] += n
		}
	}
	for _, kind := range []string{"raised", "lowered", "longer", "shorter", "faster", "slower", "other algorithm",
		"other window or zone", "removed", "override", "override with an end", "no limits", "disabled", "shadow",
		"deleted", "reset"} {
		require.True(t, kinds[kind] > 0 || ops < changeOps, kind)
	}
	t.Logf("changes of limits in use: %v", kinds)
}

// runChanges returns how often definitions changed, by kind.
func runChanges(t *testing.T, seed uint64, ops int) map[string]int {
	g := &changeTraffic{policyTraffic{Rand: seeded(seed + 7000), at: engine.Stamp{NowNs: 1e18, WallOffsetNs: 12345}},
		map[string]int{}, 1 + int(seed%3)}
	m := newPolicyModel()
	table, second := metaTable(1<<g.IntN(5)), engine.NewTable(engine.Options{Shards: 1})
	journal := &passJournal{t: t, Rand: seeded(seed + 8000)}
	for i := range ops {
		op := g.next()
		op.ID = nil // another test covers remembered answers
		if op.Code == engine.OpPolicy {
			countChange(m.kinds, &op)
		}
		lookAhead(t, m, table, g.at, op)
		want := m.do(g.at, &op)
		require.Equal(t, want, decideAt(table, g.at, op), "seed %d, operation %d: %s", seed, i, describeCheck(&op))
		var also [1]engine.Decision
		second.DecideAtomic(g.at, []engine.Op{op}, also[:])
		require.Equal(t, want, also[0], "seed %d, operation %d, second table: %s", seed, i, describeCheck(&op))
		g.pass()
		m.pass(g.at)
		g.look(t, m, table, fmt.Sprintf("seed %d, after operation %d", seed, i))
		if g.IntN(20) == 0 {
			table.Collect(g.at, g.IntN(30))
			journal.keep(table)
		}
		if g.IntN(100) == 0 {
			require.Equal(t, second.StateHash(g.at), table.StateHash(g.at), "seed %d, operation %d", seed, i)
		}
		if g.IntN(300) == 0 {
			journal.keep(table)
			table, journal.cursor = journal.load(g.at), 0
			require.Equal(t, second.StateHash(g.at), table.StateHash(g.at), "seed %d, operation %d, loaded", seed, i)
		}
	}
	return m.kinds
}

// lookAhead compares with the model what a table tells of a check before it decides: Explain, and Denials.
func lookAhead(t *testing.T, m *policyModel, table *engine.Table, at engine.Stamp, op engine.Op) {
	if op.Code != engine.OpCheck {
		return
	}
	var denial, dry [1]engine.Decision
	var denied [1]bool
	table.Denials(at, []engine.Op{op}, denial[:], denied[:])
	op.Dry = true
	want := m.do(at, &op)
	table.Explain(at, []engine.Op{op}, dry[:])
	require.Equal(t, want, dry[0], "explained: %s", describeCheck(&op))
	if denied[0] {
		require.Equal(t, want, denial[0], "denied: %s", describeCheck(&op))
	}
}

func countChange(kinds map[string]int, op *engine.Op) {
	c, ended := op.Policy, op.TTLNs > 0
	for kind, is := range map[string]bool{
		"override":             c.Do == engine.PolicyOverride && !ended,
		"override with an end": c.Do == engine.PolicyOverride && ended,
		"no limits":            c.Do == engine.PolicyOverride && len(c.Terms.Overrides[0].Limits) == 0,
		"disabled":             c.Do == engine.PolicyDisable || c.Do == engine.PolicySet && c.Terms.Disabled,
		"shadow":               c.Do == engine.PolicyShadowOn || c.Do == engine.PolicySet && c.Terms.Shadow,
		"deleted":              c.Do == engine.PolicyDelete,
		"reset":                c.Reset,
	} {
		kinds[kind] += int(one(is))
	}
}

// look compares what a read shows of a limiter, and sometimes all keys, with the model.
func (g *changeTraffic) look(t *testing.T, m *policyModel, table *engine.Table, when string) {
	name := fmt.Appendf(nil, "policy|%s|%d|%s", g.policy(), g.IntN(3), g.key())
	if k := m.limiters.keys[string(name)]; k != nil {
		m.limiters.nowNs = max(m.limiters.nowNs, g.at.NowNs)
		want, found := m.limiters.inspect(g.at, name)
		got, ok := table.Inspect(g.at, name)
		got.Bytes, want.Bytes = 0, 0
		require.Equal(t, found, ok, "%s: %s", when, name)
		require.Equal(t, want, got, "%s: %s", when, name)
		require.Equal(t, want.Algorithm != engine.NoAlgorithm, table.Has(g.at, name), "%s: %s", when, name)
	}
	if g.IntN(30) > 0 {
		return
	}
	var want, got []string
	for key, k := range m.limiters.keys {
		s := k.state.withoutIdle(g.at)
		if s.algorithm() != engine.NoAlgorithm || s.blockedItself(g.at) {
			want = append(want, key)
		}
	}
	table.Scan(g.at, 0, 1<<20, func(key []byte, _ engine.Algorithm) { got = append(got, string(key)) })
	slices.Sort(want)
	slices.Sort(got)
	require.Equal(t, want, got, "%s", when)
	if g.most == 1 { // without bundles, whose members are counted until all are idle
		require.EqualValues(t, len(want), table.Len(g.at), "%s", when)
	}
}
