package engine_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/race"
)

// orElse divides the pairs of an operation after the first so many.
func orElse(op engine.Op, split bool, firsts ...int) engine.Op {
	for _, i := range firsts {
		op.Else |= 1 << i
	}
	if split {
		op.Else |= engine.Split
	}
	return op
}

// budgets are an allowance of 100 units in windows of 100 seconds, and credits of 50 units forever.
func budgets(t *testing.T) *holds {
	return newHolds(t, map[string]engine.Limit{
		"allowance": {Algorithm: engine.FixedWindow, WindowNs: 100e9, Max: 100},
		"credits":   {Algorithm: engine.FixedWindow, Mode: engine.Forever, Max: 50},
	})
}

func (h *holds) lefts() [2]int64 { return [2]int64{h.left("allowance", "k"), h.left("credits", "k")} }

// hold makes a hold of n units that the allowance and the credits may pay together.
func (h *holds) hold(id string, n int64) engine.Decision {
	return h.do(orElse(reserve(id, n, 300e9, "allowance", "k", "credits", "k"), true, 1))
}

// TestAnExpiredAllowanceIsNoCredit checks that the credits get back what they paid and no more, when the window of the
// allowance has ended.
func TestAnExpiredAllowanceIsNoCredit(t *testing.T) {
	for _, end := range []string{"cancel", "commit", "expiry"} {
		h := budgets(t)
		require.Equal(t, "120 allowance 100 credits 20", h.hold("a", 120).Value)
		h.pass(100e9) // the allowance is full again
		require.Equal(t, [2]int64{100, 30}, h.lefts())
		switch end {
		case "cancel":
			h.do(cancel("a"))
		case "commit":
			require.EqualValues(t, 50, h.do(commit("a", 10)).Remaining)
		default:
			h.pass(200e9)
		}
		require.Equal(t, [2]int64{100, 50}, h.lefts(), end)
	}
}

// TestTheSplitOfAHoldDecides checks that what others give back meanwhile does not change who pays for a hold.
func TestTheSplitOfAHoldDecides(t *testing.T) {
	h := budgets(t)
	h.do(reserve("other", 70, 300e9, "allowance", "k"))
	require.Equal(t, "40 allowance 30 credits 10", h.hold("a", 40).Value)
	h.do(cancel("other"))
	require.Equal(t, [2]int64{70, 40}, h.lefts())
	extend := engine.Op{Code: engine.OpExtend, Key: []byte("a"), Cost: 5, ID: engine.ExtensionID(1)}
	require.Equal(t, "45 allowance 35 credits 10", h.do(extend).Value, "an extension asks the allowance first")
	require.Equal(t, "40 allowance 30 credits 10", h.hold("a", 40).Value, "a repetition gets the first answer")
	report := commit("a", 33)
	report.Keep = true
	require.EqualValues(t, 40, h.do(report).Remaining)
	require.EqualValues(t, 49, h.do(commit("a", 36)).Remaining, "the credits paid last and get back first")
	require.Equal(t, [2]int64{65, 49}, h.lefts())

	// What is used beyond a hold is paid by the last source that has paid.
	require.Equal(t, "10 allowance 10 credits 0", h.hold("b", 10).Value)
	require.EqualValues(t, 35, h.do(commit("b", 30)).Remaining)
	require.Equal(t, [2]int64{35, 49}, h.lefts())
	require.Equal(t, "40 allowance 35 credits 5", h.hold("c", 40).Value)
	require.EqualValues(t, 39, h.do(commit("c", 45)).Remaining)
	require.Equal(t, [2]int64{0, 39}, h.lefts())

	// A late commit is paid as the hold was, whatever is left by then.
	h = budgets(t)
	require.Equal(t, "120 allowance 100 credits 20", h.hold("late", 120).Value)
	h.pass(300e9)
	require.Equal(t, [2]int64{100, 50}, h.lefts())
	require.EqualValues(t, 25, h.do(commit("late", 125)).Remaining)
	require.Equal(t, [2]int64{0, 25}, h.lefts())
}

// TestAlternativesAreRefused checks what denies or refuses a request with alternatives as a whole.
func TestAlternativesAreRefused(t *testing.T) {
	h := budgets(t)
	h.do(setPolicy("strikes", engine.Policy{Limits: []engine.PolicyLimit{{Limit: engine.Limit{
		Algorithm: engine.Strike, WindowNs: 1e9, Max: 5,
		Steps: engine.MakeSteps([]engine.Step{{Threshold: 5, PenaltyNs: 1e9}}),
	}}}}))
	either := orElse(check(1, "allowance", "k", "credits", "j"), false, 1)
	require.EqualValues(t, 1, h.do(either).Allowed)
	h.do(engine.Op{Code: engine.OpBlock, Key: []byte("j"), TTLNs: 5e9})
	d := h.do(either)
	require.Equal(t, [4]int64{0, 5000, engine.NoPart, 1}, [4]int64{d.Allowed, d.RetryMs, int64(d.Part), int64(d.Pair)})
	h.do(check(99, "allowance", "k"))
	h.do(orElse(check(50, "allowance", "i", "credits", "j"), false, 1))
	require.EqualValues(t, 5000, h.do(either).RetryMs, "behind the block one alternative is enough")
	require.Equal(t, engine.Decision{Status: engine.NotRefundable},
		h.do(orElse(check(1, "allowance", "k", "strikes", "k"), false, 1)))
	require.Equal(t, engine.Decision{Status: engine.UnknownPolicy, Pair: 2},
		h.do(orElse(check(1, "allowance", "k", "credits", "k", "none", "k"), false, 1, 2)))
	require.Zero(t, h.left("allowance", "k"))
}

// TestASplitMakesNoDebt checks that a bucket goes into debt for a request that it pays alone, and not for a part of
// one.
func TestASplitMakesNoDebt(t *testing.T) {
	h := budgets(t)
	bucket := engine.PolicyLimit{Limit: heldLimits["token"], WaitNs: 60e9}
	h.do(setPolicy("waits", engine.Policy{Limits: []engine.PolicyLimit{bucket}}))
	either := orElse(check(110, "waits", "k", "credits", "k"), false, 1)
	d := h.do(either)
	require.Equal(t, "110 waits 110 credits 0", d.Value)
	require.EqualValues(t, 10000, d.RetryMs)
	h.pass(110e9)
	either.Else |= engine.Split
	d = h.do(either)
	require.Equal(t, "110 waits 100 credits 10", d.Value)
	require.Zero(t, d.RetryMs)
	require.EqualValues(t, 40, d.Remaining)
}

// TestADisabledAlternative checks that an alternative without limits pays without counting, and is named.
func TestADisabledAlternative(t *testing.T) {
	h := budgets(t)
	h.do(check(100, "allowance", "k"))
	h.do(setPolicy("free", engine.Policy{Disabled: true, Limits: []engine.PolicyLimit{{Limit: heldLimits["fixed"]}}}))
	d := h.do(orElse(reserve("a", 7, 1e9, "allowance", "k", "free", "k"), true, 1))
	require.Equal(t, [3]int64{1, 1, 100}, [3]int64{d.Allowed, int64(d.Pair), d.Remaining})
	require.Equal(t, "7 allowance 0 free 7", d.Value)
	require.Equal(t, engine.Decision{Allowed: 1, Remaining: 100}, h.do(commit("a", 9)))
}

// TestADividedCheckHappensOnce checks that a repeated check gets the first answer, also from a stored table, and that
// the hold and the remembered answer survive there.
func TestADividedCheckHappensOnce(t *testing.T) {
	h := budgets(t)
	h.table = engine.NewTable(engine.Options{TrackChanges: true})
	for name, l := range map[string]engine.Limit{
		"allowance": {Algorithm: engine.FixedWindow, WindowNs: 100e9, Max: 100},
		"credits":   {Algorithm: engine.FixedWindow, Mode: engine.Forever, Max: 50},
	} {
		h.do(setPolicy(name, engine.Policy{Limits: []engine.PolicyLimit{{Limit: l}}}))
	}
	once := orElse(check(110, "allowance", "k", "credits", "k"), true, 1)
	once.ID = []byte("id")
	once.Bind()
	first := h.do(once)
	require.Equal(t, "110 allowance 100 credits 10", first.Value)
	held := h.hold("a", 30)
	other := engine.NewTable(engine.Options{TrackChanges: true})
	require.NoError(t, h.table.Drain(1000, func(changes []engine.Change) error {
		for _, c := range changes {
			err := loadOne(other, h.at, c.Key, c.Value)
			require.NoError(t, err)
		}
		return nil
	}))
	require.Equal(t, h.table.StateHash(h.at), other.StateHash(h.at))
	for _, table := range []*engine.Table{h.table, other} {
		h.table = table
		require.Equal(t, first, h.do(once))
		require.Equal(t, held, h.hold("a", 30))
		again := once
		again.Else &^= engine.Split
		again.Bind()
		require.Equal(t, engine.OtherTerms, h.do(again).Status)
		require.Equal(t, engine.OtherTerms,
			h.do(orElse(reserve("a", 30, 300e9, "allowance", "k", "credits", "k"), false, 1)).Status)
		require.Equal(t, [2]int64{0, 10}, h.lefts())
	}
	h.pass(60e9)
	require.Zero(t, h.do(once).Allowed, "the ID is forgotten")
}

// TestWaitsOfAlternatives checks that a denied request fits after its wait, if nobody takes units meanwhile. It does not
// fit before, unless alternatives pay together. No wait helps a request that is told so.
func TestWaitsOfAlternatives(t *testing.T) {
	waits, early, never := 0, 0, 0
	for seed := range uint64(3000) {
		g := &holdTraffic{Rand: seeded(seed), at: engine.Stamp{NowNs: 1e18 + 7}, policies: modelPolicies}
		table := metaTable(4)
		g.setPolicies(table)
		decideAt(table, g.at, setPolicy("ever", engine.Policy{Limits: []engine.PolicyLimit{{Limit: engine.Limit{
			Algorithm: engine.FixedWindow, Mode: engine.Forever, Max: 10}}}}))
		decideAt(table, g.at, setPolicy("kept", engine.Policy{Reserved: 200, RetryNs: 5e6,
			Limits: []engine.PolicyLimit{{Limit: modelPolicies["token"][0], WaitNs: 1e9}}}))
		name := func() string { return append(modelNames, "ever", "kept")[g.IntN(len(modelNames)+2)] }
		for range 30 {
			decideAt(table, g.at, check(g.Int64N(20), name(), fmt.Sprint("k", g.IntN(5))[:1+g.IntN(2)]))
			g.pass()
		}
		pairs, firsts := []string{}, []int{}
		for i := range 2 + g.IntN(4) {
			pairs = append(pairs, name(), fmt.Sprint("k", i)[:1+g.IntN(2)])
			if i > 0 && g.IntN(3) > 0 && len(firsts) < 3 {
				firsts = append(firsts, i)
			}
		}
		if op := check(1, pairs...); len(firsts) == 0 || twice(&op) {
			continue
		}
		ask := orElse(check(1+g.Int64N(70), pairs...), g.IntN(2) == 0, firsts...)
		ask.Partial = g.IntN(5) == 0
		ask.Dry = true
		fits := func(ms int64) bool {
			out := make([]engine.Decision, 1)
			table.Explain(engine.Stamp{NowNs: g.at.NowNs + ms*1e6}, []engine.Op{ask}, out)
			return out[0].Allowed > 0
		}
		d := decideAt(table, g.at, ask)
		switch {
		case d.Allowed > 0:
		case d.RetryMs < 0:
			never++
			for _, ms := range []int64{1, 1000, 3000, 7000, 20000, 1e8} {
				require.False(t, fits(ms), "seed %d: %s after %d ms", seed, describeCheck(&ask), ms)
			}
		default:
			waits++
			require.True(t, fits(d.RetryMs), "seed %d: %s after %d ms", seed, describeCheck(&ask), d.RetryMs)
			if fits(d.RetryMs - 1) {
				early++
				require.True(t, ask.Else.Split() || containsPolicy(&ask, "kept"), "seed %d: %s", seed,
					describeCheck(&ask))
			}
		}
	}
	t.Log(waits, early, never)
	require.Greater(t, waits, 100)
	require.Greater(t, never, 100)
}

// twice reports whether a check has a pair twice.
func twice(op *engine.Op) bool {
	seen := map[string]bool{}
	for _, p := range pairsOf(op) {
		name := fmt.Sprint(string(p.Policy), " ", string(p.Key))
		if seen[name] {
			return true
		}
		seen[name] = true
	}
	return false
}

func containsPolicy(op *engine.Op, name string) bool {
	for _, p := range pairsOf(op) {
		if string(p.Policy) == name {
			return true
		}
	}
	return false
}

// TestADividedCheckThatRunsOutOfMemory checks that the first alternative gets back what it paid if there is no memory
// for the limiter of the second.
func TestADividedCheckThatRunsOutOfMemory(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	h := budgets(t)
	h.table = engine.NewTable(engine.Options{MaxMemoryBytes: memoryBound, WhenFull: engine.Deny, Shards: 4})
	for _, name := range []string{"allowance", "credits"} {
		h.do(setPolicy(name, engine.Policy{Limits: []engine.PolicyLimit{{Limit: heldLimits["fixed"]}}}))
	}
	h.do(check(90, "allowance", "k"))
	require.Positive(t, flood(h.table, h.at.NowNs, 0, 400_000))
	refused := 0
	for i := range 200 {
		other := fmt.Sprint("a longer key than those of the flood", i)
		d := h.do(orElse(check(20, "allowance", "k", "credits", other), true, 1))
		if d.Status == engine.OutOfMemory {
			refused++
			require.Equal(t, int64(10), h.left("allowance", "k"))
			hold := orElse(reserve("a", 20, 1e9, "allowance", "k", "credits", other), true, 1)
			require.Equal(t, engine.OutOfMemory, h.do(hold).Status)
			require.Equal(t, int64(10), h.left("allowance", "k"))
			require.Equal(t, engine.NoHold, h.do(commit("a", 1)).Status)
			break
		}
		h.do(engine.Op{Code: engine.OpRefund, Key: []byte("policy|allowance|0|k"), Cost: d.Allowed * 10})
	}
	require.Positive(t, refused)
}
