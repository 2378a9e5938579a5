package engine_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
)

// holds is a table with policies and a clock of its own.
type holds struct {
	t     *testing.T
	table *engine.Table
	at    engine.Stamp
}

func newHolds(t *testing.T, limits map[string]engine.Limit) *holds {
	h := &holds{t, engine.NewTable(engine.Options{}), engine.Stamp{NowNs: 1e18}}
	for name, l := range limits {
		h.do(setPolicy(name, engine.Policy{Limits: []engine.PolicyLimit{{Limit: l}}}))
	}
	return h
}

func (h *holds) do(op engine.Op) engine.Decision { return decideAt(h.table, h.at, op) }
func (h *holds) pass(ns int64)                   { h.at.NowNs += ns }

func reserve(id string, n, ttlNs int64, pairs ...string) engine.Op {
	op := check(n, pairs...)
	op.Code, op.ID, op.TTLNs = engine.OpReserve, []byte(id), ttlNs
	return op
}

func commit(id string, actual int64) engine.Op {
	return engine.Op{Code: engine.OpCommit, Key: []byte(id), Cost: actual}
}

func cancel(id string) engine.Op { return engine.Op{Code: engine.OpCancel, Key: []byte(id)} }

// left returns the units left of a policy for a key.
func (h *holds) left(policy, key string) int64 { return h.do(check(0, policy, key)).Remaining }

var heldLimits = map[string]engine.Limit{
	"token":   {Algorithm: engine.TokenBucket, Rate: engine.Rate{Units: 1, PerNs: 1e9}, Max: 100},
	"leaky":   {Algorithm: engine.LeakyBucket, Rate: engine.Rate{Units: 1, PerNs: 1e9}, Max: 99},
	"fixed":   {Algorithm: engine.FixedWindow, WindowNs: 100e9, Max: 100},
	"log":     {Algorithm: engine.SlidingLog, WindowNs: 100e9, Max: 100},
	"counter": {Algorithm: engine.SlidingCounter, WindowNs: 100e9, Max: 100},
}

func TestAHoldIsCompleted(t *testing.T) {
	for name := range heldLimits {
		t.Run(name, func(t *testing.T) {
			h := newHolds(t, heldLimits)
			d := h.do(reserve("r1", 60, 10e9, name, "k"))
			require.Equal(t, int64(1), d.Allowed)
			require.Equal(t, int64(40), d.Remaining)
			require.Equal(t, d, h.do(reserve("r1", 60, 10e9, name, "k")),
				"a repeated reserve must get the same answer")
			require.Equal(t, engine.OtherTerms, h.do(reserve("r1", 61, 10e9, name, "k")).Status)
			require.Equal(t, int64(0), h.do(reserve("r2", 41, 10e9, name, "k")).Allowed, "no further hold fits")
			require.Equal(t, engine.NoHold, h.do(commit("r2", 1)).Status, "a denied hold must not exist")

			require.Equal(t, engine.Decision{Allowed: 1, Remaining: 75}, h.do(commit("r1", 25)))
			require.Equal(t, engine.Decision{Allowed: 1, Remaining: 75}, h.do(commit("r1", 25)),
				"a repeated commit must get the same answer")
			require.Equal(t, engine.OtherTerms, h.do(commit("r1", 26)).Status)
			require.Equal(t, int64(0), h.do(cancel("r1")).Allowed, "a completed hold must not be cancelled")
			require.Equal(t, int64(75), h.left(name, "k"))

			require.Equal(t, int64(1), h.do(reserve("r3", 75, 10e9, name, "k")).Allowed)
			require.Equal(t, int64(1), h.do(cancel("r3")).Allowed)
			require.Equal(t, int64(1), h.do(cancel("r3")).Allowed, "a repeated cancel must get the same answer")
			require.Equal(t, int64(75), h.left(name, "k"))
		})
	}
}

// TestAHoldEndsByItself checks that an expired hold returns its units, and that a late commit still charges them.
func TestAHoldEndsByItself(t *testing.T) {
	for name := range heldLimits {
		t.Run(name, func(t *testing.T) {
			h := newHolds(t, heldLimits)
			h.do(check(10, name, "k"))
			h.do(reserve("r", 90, 1e9, name, "k"))
			h.pass(1e9 - 1)
			require.Equal(t, int64(0), h.left(name, "k"))
			h.pass(1)
			require.GreaterOrEqual(t, h.left(name, "k"), int64(90))
			require.Equal(t, int64(0), h.do(cancel("r")).Allowed)
			before := h.left(name, "k")
			require.Equal(t, before-30, h.do(commit("r", 30)).Remaining)
			require.Equal(t, before-30, h.do(commit("r", 30)).Remaining, "a late commit must charge once")
			h.pass(60e9)
			require.Equal(t, engine.NoHold, h.do(commit("r", 30)).Status, "the hold must be forgotten in the end")
		})
	}
}

// TestMoreThanWasHeldIsTaken checks that a commit of more units than were held takes them all, even beyond the limit.
func TestMoreThanWasHeldIsTaken(t *testing.T) {
	for name, limit := range heldLimits {
		t.Run(name, func(t *testing.T) {
			h := newHolds(t, heldLimits)
			h.do(reserve("r", 90, 10e9, name, "k"))
			require.Equal(t, int64(0), h.do(commit("r", 150)).Remaining)
			info, _ := h.table.Inspect(h.at, fmt.Append(nil, "policy|", name, "|0|k"))
			require.Equal(t, int64(150), info.Used)
			require.Equal(t, limit.Max, info.Limit.Max)
			h.do(reserve("all", 1, 10e9, name, "other"))
			require.Equal(t, int64(0), h.do(commit("all", engine.MaxUnits)).Remaining)
			require.Equal(t, int64(0), h.do(check(1, name, "other")).Allowed)
		})
	}
}

// TestASharedHold checks that a hold takes from and completes several policies, or none. A policy that was deleted
// in between, or does not bind, causes no error.
func TestASharedHold(t *testing.T) {
	h := newHolds(t, heldLimits)
	h.do(setPolicy("shadow", engine.Policy{Limits: []engine.PolicyLimit{{Limit: heldLimits["fixed"]}}, Shadow: true}))
	h.do(setPolicy("off", engine.Policy{Limits: []engine.PolicyLimit{{Limit: heldLimits["fixed"]}}, Disabled: true}))
	pairs := []string{"token", "a", "fixed", "b", "log", "a", "shadow", "a", "off", "a"}
	h.do(check(95, "log", "a"))
	h.do(check(98, "shadow", "a"))
	require.Equal(t, int64(0), h.do(reserve("r", 6, 10e9, pairs...)).Allowed)
	require.Equal(t, int64(100), h.left("token", "a"), "a denied hold must take nothing from any policy")

	d := h.do(reserve("r", 5, 10e9, pairs...))
	require.Equal(t, engine.Decision{Allowed: 1, ResetMs: 100000, Limit: 100, Pair: 2}, d)
	require.Equal(t, []int64{95, 95, 0, 2},
		[]int64{h.left("token", "a"), h.left("fixed", "b"), h.left("log", "a"), h.left("shadow", "a")})
	h.do(engine.Op{Code: engine.OpPolicy, Key: []byte("fixed"), Policy: &engine.PolicyChange{Do: engine.PolicyDelete}})
	require.Equal(t, engine.Decision{Allowed: 1, Remaining: 3}, h.do(commit("r", 2)))
	require.Equal(t, []int64{98, 3, 2}, []int64{h.left("token", "a"), h.left("log", "a"), h.left("shadow", "a")})

	h.do(reserve("s", 5, 10e9, "token", "a"))
	h.do(engine.Op{Code: engine.OpPolicy, Key: []byte("token"), Policy: &engine.PolicyChange{Do: engine.PolicyDelete}})
	require.Equal(t, engine.Decision{Allowed: 1, Remaining: -1}, h.do(commit("s", 2)),
		"without policies there is no limit to report")
}

// TestHoldsOfOneLimitAreBounded checks that a hold beyond the bound is refused and takes nothing, until another one
// expires.
func TestHoldsOfOneLimitAreBounded(t *testing.T) {
	h := newHolds(t, map[string]engine.Limit{"p": {Algorithm: engine.FixedWindow, Mode: engine.Forever, Max: 1e6}})
	h.table.SetRules(engine.RulesManyHolds - 1)
	for i := range engine.MaxHolders {
		require.Equal(t, int64(1), h.do(reserve(fmt.Sprint(i), 1, 10e9+int64(i), "p", "k")).Allowed)
	}
	require.Equal(t, engine.TooManyHolders, h.do(reserve("more", 1, 10e9, "p", "k")).Status)
	require.Equal(t, engine.NoHold, h.do(commit("more", 1)).Status)
	h.pass(10e9)
	require.Equal(t, int64(1), h.do(reserve("more", 1, 10e9, "p", "k")).Allowed)
	require.Equal(t, int64(1e6-engine.MaxHolders), h.left("p", "k"))
}

// TestHoldsAreNoVictims checks that limiters with holds are not evicted when memory is full, and that their holds can
// be committed.
func TestHoldsAreNoVictims(t *testing.T) {
	h := newHolds(t, nil)
	h.table = engine.NewTable(engine.Options{Shards: 1, MaxMemoryBytes: 1 << 20})
	h.do(setPolicy("p", engine.Policy{Limits: []engine.PolicyLimit{quotaLimit(1000)}}))
	for i := range 100 {
		require.Equal(t, int64(1), h.do(reserve(fmt.Sprint(i), 1, 1e9, "p", fmt.Sprint("k", i))).Allowed)
	}
	for i := range 20000 {
		h.do(engine.Op{Key: fmt.Append(nil, "other", i),
			Limit: engine.Limit{Algorithm: engine.FixedWindow, WindowNs: 3600e9, Max: 1}, Cost: 1})
	}
	require.NotZero(t, h.table.Stats(h.at).Evicted)
	for i := range 100 {
		require.Equal(t, int64(1), h.do(commit(fmt.Sprint(i), 1)).Allowed)
	}
}

// TestLimitersAreIdleWithoutTheirHolds checks that read operations see the end of a hold at once. An hour later no
// memory of it is left.
func TestLimitersAreIdleWithoutTheirHolds(t *testing.T) {
	for name := range heldLimits {
		h := newHolds(t, heldLimits)
		empty := h.table.MemoryBytes()
		for i := range 300 {
			h.do(reserve(fmt.Sprint(i), 1, 1e9+int64(i)*1e6, name, fmt.Sprint("k", i%3)))
		}
		h.pass(2e9)
		_, found := h.table.Inspect(h.at, fmt.Append(nil, "policy|", name, "|0|k1"))
		require.False(t, found, name)
		require.False(t, h.table.Has(h.at, fmt.Append(nil, "policy|", name, "|0|k1")), name)
		h.table.Scan(h.at, 0, 1000, func(key []byte, _ engine.Algorithm) { require.Fail(t, string(key)) })
		require.Zero(t, h.table.Len(h.at), name)
		h.pass(3600e9)
		require.Zero(t, h.table.Len(h.at), name)
		require.LessOrEqual(t, h.table.MemoryBytes()-empty, int64(64*3*16<<10),
			"%s: only spare pages may remain", name)
	}
}

func extend(id string, number, n int64) engine.Op {
	op := engine.Op{Code: engine.OpExtend, Key: []byte(id), ID: engine.ExtensionID(number), Cost: n}
	op.Bind()
	return op
}

// TestAHoldOfManyParts checks that a hold gives back the units of its last parts at most, where units of others are
// between all of its own, and that everything else stays used.
func TestAHoldOfManyParts(t *testing.T) {
	h := newHolds(t, map[string]engine.Limit{
		"token": {Algorithm: engine.TokenBucket, Rate: engine.Rate{Units: 1, PerNs: 1e12}, Max: 100},
	})
	h.do(reserve("r", 1, 10e9, "token", "k"))
	for number := range int64(19) {
		require.EqualValues(t, 1, h.do(check(1, "token", "k")).Allowed)
		d := h.do(extend("r", number+1, 1))
		require.EqualValues(t, 1, d.Allowed)
		require.Equal(t, fmt.Sprint(number+2), d.Value)
	}
	info, _ := h.table.Inspect(h.at, []byte("policy|token|0|k"))
	require.Equal(t, 1, info.Holders)
	require.EqualValues(t, 100-39, h.left("token", "k"))
	require.EqualValues(t, 1, h.do(cancel("r")).Allowed)
	require.EqualValues(t, 100-39+16, h.left("token", "k"))
}

// TestAHoldKeepsItsUnits checks that a hold with Keep that ends by itself stays used, and that a later commit takes
// only what is above it.
func TestAHoldKeepsItsUnits(t *testing.T) {
	for name := range heldLimits {
		t.Run(name, func(t *testing.T) {
			h := newHolds(t, heldLimits)
			for id, actual := range map[string]int64{"less": 5, "more": 30} {
				op := reserve(id, 10, 1e6, name, id)
				op.Keep = true
				h.do(op)
				require.EqualValues(t, 1, h.do(extend(id, 1, 10)).Allowed)
				h.pass(1e6)
				require.EqualValues(t, 80, h.left(name, id))
				require.Equal(t, engine.HoldEnded, h.do(extend(id, 2, 1)).Status)
				require.EqualValues(t, 100-max(actual, 20), h.do(commit(id, actual)).Remaining)
			}
		})
	}
}

// TestChangesOfHeldLimitsNeedNoLook checks that holds give the same units back through changes of a maximum and of a
// window, whether or not somebody asks for the limiter in between.
func TestChangesOfHeldLimitsNeedNoLook(t *testing.T) {
	kept := 0
	for seed := range uint64(600) {
		r := seeded(seed)
		l := heldLimits[[]string{"fixed", "log", "counter"}[r.IntN(3)]]
		asked, idle := newHolds(t, map[string]engine.Limit{"p": l}), newHolds(t, map[string]engine.Limit{"p": l})
		do := func(op engine.Op) {
			asked.do(op)
			idle.do(op)
			asked.left("p", "k")
		}
		for i := range 1 + r.Int64N(3) {
			do(reserve(fmt.Sprint("h", i), 1+r.Int64N(30), 1+r.Int64N(40e9), "p", "k"))
		}
		for range 1 + r.IntN(3) {
			ns := r.Int64N(30e9)
			asked.pass(ns)
			idle.pass(ns)
			asked.left("p", "k")
			if l.Max = 50 + r.Int64N(100); r.IntN(3) == 0 {
				l.WindowNs = (50 + r.Int64N(100)) * 1e9
			}
			do(setPolicy("p", engine.Policy{Limits: []engine.PolicyLimit{{Limit: l}}}))
		}
		require.Equal(t, asked.left("p", "k"), idle.left("p", "k"), "seed %d", seed)
		do(cancel("h0"))
		require.Equal(t, asked.left("p", "k"), idle.left("p", "k"), "seed %d", seed)
		if idle.left("p", "k") == l.Max {
			kept++
		}
	}
	require.Greater(t, kept, 60)
}
