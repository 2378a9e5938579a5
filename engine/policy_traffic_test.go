package engine_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/race"
)

// policyTraffic draws operations on a few policies and keys, so that most operations interact.
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
		steps := []engine.Step{{Threshold: 1 + g.Int64N(3), PenaltyNs: 5e8, Delay: g.IntN(2) == 0},
			{Threshold: 4 + g.Int64N(6), PenaltyNs: window, Delay: g.IntN(8) == 0}}
		l.Limit = engine.Limit{Strikes: engine.StrikeMode(g.IntN(4)), Algorithm: engine.Strike, WindowNs: window,
			Steps: engine.MakeSteps(steps), Max: steps[1].Threshold}
	}
	return l
}

func (g *policyTraffic) limits(most int) (limits []engine.PolicyLimit) {
	for range 1 + g.IntN(most) {
		limits = append(limits, g.limit())
	}
	return limits
}

func (g *policyTraffic) key() []byte {
	return fmt.Append(nil, []string{"", "", "k0|", "ip:", "k1|ip:"}[g.IntN(5)], "k", g.IntN(4))
}
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
		change := &engine.PolicyChange{Terms: p, Reset: g.IntN(4) == 0, Own: g.IntN(3) == 0}
		if change.Own && g.IntN(3) > 0 {
			p.Owner = string(g.policy())
		}
		if change.If = g.IntN(3) == 0; change.If {
			change.Version = g.Uint64N(3)
		}
		return engine.Op{Code: engine.OpPolicy, Key: g.policy(), Policy: change}
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
			Do:    engine.PolicyOverride + engine.PolicyDo(g.IntN(2)),
			Terms: &engine.Policy{Overrides: []engine.Override{o}},
		}}
	case n < 5:
		name := fmt.Appendf(nil, "policy|%s|%d|%s", g.policy(), g.IntN(3), g.key())
		return engine.Op{Code: []engine.OpCode{engine.OpReset, engine.OpRefund}[g.IntN(2)], Key: name,
			Cost: 1 + g.Int64N(3)}
	case n < 6 && g.IntN(3) == 0:
		op := engine.Op{Code: engine.OpForgive, Key: g.key(), Text: []byte("p0"), Cost: 1}
		for i := range g.IntN(3) {
			op.Also = append(op.Also, engine.Pair{Policy: fmt.Append(nil, "p", i+1), Key: g.key()})
		}
		return op
	case n < 6:
		return engine.Op{Code: []engine.OpCode{engine.OpBlock, engine.OpUnblock, engine.OpBlockEverywhere}[g.IntN(3)],
			Key: g.key(), TTLNs: 1e9}
	}
	op := engine.Op{Code: engine.OpCheck, Key: g.key(), Text: g.policy(), Cost: g.Int64N(4), Partial: g.IntN(4) == 0,
		High: g.IntN(3) == 0, Dry: g.IntN(10) == 0}
	if g.IntN(8) == 0 {
		op.From = g.key()
	}
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

// TestChecksAreAsTheModelSays checks tables of one and of many shards against the simple model, through changes of
// policies. Both tables must have the same state hash.
func TestChecksAreAsTheModelSays(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	for seed := range uint64(10) {
		g := &policyTraffic{Rand: seeded(seed), at: engine.Stamp{NowNs: 1e18, WallOffsetNs: 12345}}
		m := newPolicyModel()
		single, many := engine.NewTable(engine.Options{Shards: 1, TrackChanges: true}),
			engine.NewTable(engine.Options{Shards: 64})
		admitted, denied := 0, 0
		for i := range 4000 {
			op := g.next()
			if len(op.ID) > 0 {
				op.ID = nil // another test covers remembered answers
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
	fmt.Fprintf(&b, "code %d key %s text %s cost %d partial %v high %v dry %v", op.Code, op.Key, op.Text, op.Cost,
		op.Partial, op.High, op.Dry)
	for _, p := range op.Also {
		fmt.Fprintf(&b, " also %s %s", p.Policy, p.Key)
	}
	return b.String()
}
