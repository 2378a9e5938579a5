package engine_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
)

// holds is a table with policies, and a clock of its own.
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

// left is what is left of a policy for a key.
func (h *holds) left(policy, key string) int64 { return h.do(check(0, policy, key)).Remaining }

var heldLimits = map[string]engine.Limit{
	"token":   {Algorithm: engine.TokenBucket, Rate: engine.Rate{Units: 1, PerNs: 1e9}, Max: 100},
	"leaky":   {Algorithm: engine.LeakyBucket, Rate: engine.Rate{Units: 1, PerNs: 1e9}, Max: 99},
	"fixed":   {Algorithm: engine.FixedWindow, WindowNs: 100e9, Max: 100},
	"log":     {Algorithm: engine.SlidingLog, WindowNs: 100e9, Max: 100},
	"counter": {Algorithm: engine.SlidingCounter, WindowNs: 100e9, Max: 100},
}

func TestAHoldIsSettled(t *testing.T) {
	for name := range heldLimits {
		t.Run(name, func(t *testing.T) {
			h := newHolds(t, heldLimits)
			d := h.do(reserve("r1", 60, 10e9, name, "k"))
			require.Equal(t, int64(1), d.Allowed)
			require.Equal(t, int64(40), d.Remaining)
			require.Equal(t, d, h.do(reserve("r1", 60, 10e9, name, "k")), "the same request again")
			require.Equal(t, engine.OtherTerms, h.do(reserve("r1", 61, 10e9, name, "k")).Status)
			require.Equal(t, int64(0), h.do(reserve("r2", 41, 10e9, name, "k")).Allowed, "nothing more fits")
			require.Equal(t, engine.NoHold, h.do(commit("r2", 1)).Status, "what was denied is no hold")

			require.Equal(t, engine.Decision{Allowed: 1, Remaining: 75}, h.do(commit("r1", 25)))
			require.Equal(t, engine.Decision{Allowed: 1, Remaining: 75}, h.do(commit("r1", 25)), "again")
			require.Equal(t, engine.OtherTerms, h.do(commit("r1", 26)).Status)
			require.Equal(t, int64(0), h.do(cancel("r1")).Allowed, "it is settled")
			require.Equal(t, int64(75), h.left(name, "k"))

			require.Equal(t, int64(1), h.do(reserve("r3", 75, 10e9, name, "k")).Allowed)
			require.Equal(t, int64(1), h.do(cancel("r3")).Allowed)
			require.Equal(t, int64(1), h.do(cancel("r3")).Allowed, "again")
			require.Equal(t, int64(75), h.left(name, "k"))
		})
	}
}

// TestMoreThanWasHeldIsTaken: what happened counts, room or not.
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

// TestAHoldEndsByItself: its units come back at its end, and a commit that is late
// charges them all the same.
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
			require.Equal(t, before-30, h.do(commit("r", 30)).Remaining, "once")
			h.pass(60e9)
			require.Equal(t, engine.NoHold, h.do(commit("r", 30)).Status, "forgotten")
		})
	}
}
