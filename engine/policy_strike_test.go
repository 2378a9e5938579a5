package engine_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
)

// lockoutLimit blocks for ten seconds at the second strike, and longer at the third.
func lockoutLimit() engine.PolicyLimit {
	steps := []engine.Step{{Threshold: 2, PenaltyNs: 10e9}, {Threshold: 3, PenaltyNs: 900e9}}
	return engine.PolicyLimit{Limit: engine.Limit{Algorithm: engine.Strike, WindowNs: 900e9, Max: 3,
		Steps: engine.MakeSteps(steps)}}
}

// TestStrikesBesideOthers checks that a strike which begins a penalty counts together with the other limits of its
// check. During the penalty nothing counts anywhere.
func TestStrikesBesideOthers(t *testing.T) {
	at, table := engine.Stamp{NowNs: 1e18}, engine.NewTable(engine.Options{})
	decideAt(table, at, setPolicy("user", engine.Policy{Limits: []engine.PolicyLimit{lockoutLimit()}}))
	decideAt(table, at, setPolicy("all", engine.Policy{Limits: []engine.PolicyLimit{quotaLimit(100)}}))
	both := check(1, "all", "x", "user", "42")
	require.Equal(t, engine.Decision{Pair: 1, Allowed: 1, Remaining: 2, ResetMs: 900_000, Limit: 3},
		decideAt(table, at, both))
	require.Equal(t, engine.Decision{Pair: 1, Remaining: 1, RetryMs: 10_000, ResetMs: 900_000, Limit: 3},
		decideAt(table, at, both))
	require.EqualValues(t, 2, usedOf(table, at, "policy|all|0|x"))
	at.NowNs += 1e9
	require.Equal(t, engine.Decision{Pair: 1, Remaining: 1, RetryMs: 9_000, ResetMs: 899_000, Limit: 3},
		decideAt(table, at, both))
	require.EqualValues(t, 2, usedOf(table, at, "policy|all|0|x"))
	counts := table.Policies().Get([]byte("user")).Counts()
	require.Equal(t, engine.PolicyCounts{Admitted: 1, Denied: 2}, counts)
	require.EqualValues(t, 1, table.Stats(at).Penalties)
}

// TestAShadowStrikesNobody checks that strikes of a shadow policy count and reach their penalties, but are admitted.
func TestAShadowStrikesNobody(t *testing.T) {
	at, table := engine.Stamp{NowNs: 1e18}, engine.NewTable(engine.Options{})
	decideAt(table, at, setPolicy("user", engine.Policy{Limits: []engine.PolicyLimit{lockoutLimit()}, Shadow: true}))
	for range 4 {
		require.EqualValues(t, 1, decideAt(table, at, check(1, "user", "42")).Allowed)
	}
	require.Equal(t, engine.PolicyCounts{Admitted: 1, Shadowed: 3}, table.Policies().Get([]byte("user")).Counts())
	require.EqualValues(t, 2, usedOf(table, at, "policy|user|0|42"))
}

// TestStrikesAreNotHeld checks that a hold never takes strikes. A hold from before the policy had strikes is not
// charged in strikes.
func TestStrikesAreNotHeld(t *testing.T) {
	at, table := engine.Stamp{NowNs: 1e18}, engine.NewTable(engine.Options{})
	decideAt(table, at, setPolicy("p", engine.Policy{Limits: []engine.PolicyLimit{quotaLimit(100)}}))
	hold := engine.Op{Code: engine.OpReserve, Text: []byte("p"), Key: []byte("k"), Cost: 5,
		TTLNs: 60e9, ID: []byte("one")}
	require.EqualValues(t, 1, decideAt(table, at, hold).Allowed)
	decideAt(table, at, setPolicy("p", engine.Policy{Limits: []engine.PolicyLimit{lockoutLimit()}}))
	hash := table.StateHash(at)
	hold.ID = []byte("two")
	require.Equal(t, engine.Decision{Status: engine.NotRefundable}, decideAt(table, at, hold))
	require.Equal(t, hash, table.StateHash(at))
	decideAt(table, at, engine.Op{Code: engine.OpCommit, Key: []byte("one"), Cost: 9})
	require.EqualValues(t, 3, decideAt(table, at, check(0, "p", "k")).Remaining)
}

// TestWithoutMemoryNoStrikeCounts checks that no strike counts and no penalty begins if a later limit of the check
// finds no memory.
func TestWithoutMemoryNoStrikeCounts(t *testing.T) {
	at := engine.Stamp{NowNs: 1e18}
	table := engine.NewTable(engine.Options{Shards: 1, MaxMemoryBytes: 1 << 20, WhenFull: engine.Deny})
	decideAt(table, at, setPolicy("user", engine.Policy{Limits: []engine.PolicyLimit{lockoutLimit()}}))
	decideAt(table, at, setPolicy("all", engine.Policy{Limits: []engine.PolicyLimit{quotaLimit(100)}}))
	decideAt(table, at, check(1, "user", "42"))
	for i := range 200_000 { // until the memory is full
		if decideAt(table, at, check(1, "all", fmt.Sprint("new", i))).Status == engine.OutOfMemory {
			break
		}
	}
	require.Equal(t, engine.OutOfMemory, decideAt(table, at, check(1, "user", "42", "all", "no room")).Status)
	require.EqualValues(t, 1, usedOf(table, at, "policy|user|0|42"))
	require.EqualValues(t, 1, decideAt(table, at, check(0, "user", "42")).Allowed)
}

// TestInvalidStrikesAreNoLimit checks that a strike limit which no decision could compute is refused.
func TestInvalidStrikesAreNoLimit(t *testing.T) {
	valid := lockoutLimit()
	steps := func(steps ...engine.Step) engine.PolicyLimit {
		l := valid
		l.Limit.Steps, l.Limit.Max = engine.MakeSteps(steps), 3
		return l
	}
	for name, l := range map[string]engine.PolicyLimit{
		"none":        steps(),
		"descending":  steps(engine.Step{Threshold: 4, PenaltyNs: 1}, engine.Step{Threshold: 3, PenaltyNs: 1}),
		"no penalty":  steps(engine.Step{Threshold: 3}),
		"another max": steps(engine.Step{Threshold: 4, PenaltyNs: 1}),
		"no strikes": {Limit: engine.Limit{Algorithm: engine.SlidingLog, WindowNs: 1, Max: 3,
			Steps: valid.Limit.Steps}},
	} {
		p := engine.Policy{Name: "p", Limits: []engine.PolicyLimit{l}}
		require.ErrorIs(t, p.Validate(), engine.ErrPolicy, name)
	}
	p := engine.Policy{Name: "p", Limits: []engine.PolicyLimit{valid}}
	require.NoError(t, p.Validate())
}
