package engine_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
)

func quotaLimit(most int64) engine.PolicyLimit {
	return engine.PolicyLimit{Limit: engine.Limit{Algorithm: engine.FixedWindow, Mode: engine.Forever, Max: most}}
}

func setPolicy(name string, p engine.Policy) engine.Op {
	return engine.Op{Code: engine.OpPolicy, Key: []byte(name), Policy: &engine.PolicyChange{Terms: &p}}
}

func check(cost int64, pairs ...string) engine.Op {
	op := engine.Op{Code: engine.OpCheck, Text: []byte(pairs[0]), Key: []byte(pairs[1]), Cost: cost}
	for i := 2; i < len(pairs); i += 2 {
		op.Also = append(op.Also, engine.Pair{Policy: []byte(pairs[i]), Key: []byte(pairs[i+1])})
	}
	return op
}

func decideAt(t *engine.Table, at engine.Stamp, op engine.Op) engine.Decision {
	var out [1]engine.Decision
	t.Decide(at, []engine.Op{op}, out[:])
	return out[0]
}

// someCheck returns a check of one to four different pairs.
func someCheck(r *rand.Rand, policies, keys int) (op engine.Op, chosen [][2]int) {
	seen := map[[2]int]bool{}
	var pairs []string
	for range 1 + r.IntN(4) {
		x := [2]int{r.IntN(policies), r.IntN(keys)}
		if !seen[x] {
			seen[x], chosen = true, append(chosen, x)
			pairs = append(pairs, fmt.Sprint("p", x[0]), fmt.Sprint("k", x[1]))
		}
	}
	return check(1+r.Int64N(3), pairs...), chosen
}

// TestNoDecisionSeesHalfAChange checks that two policies which swap limits in one step do so atomically. Every answer
// must match the terms before or after the step.
func TestNoDecisionSeesHalfAChange(t *testing.T) {
	at := engine.Stamp{NowNs: 1e18}
	table := engine.NewTable(engine.Options{})
	terms := func(max, reserved int64) engine.Policy {
		return engine.Policy{Limits: []engine.PolicyLimit{quotaLimit(max)}, Reserved: reserved}
	}
	swap := [2][]engine.Op{
		{setPolicy("p", terms(1000, 500)), setPolicy("q", terms(3000, 0))},
		{setPolicy("p", terms(3000, 0)), setPolicy("q", terms(1000, 500))},
	}
	out := make([]engine.Decision, 2)
	table.DecideAtomic(at, swap[0], out)
	var done atomic.Bool
	var all sync.WaitGroup
	var bySide [2]atomic.Int64
	for c := range 8 {
		all.Go(func() {
			for i := 0; !done.Load(); i++ {
				key := fmt.Sprint(c, ":", i)
				d := decideAt(table, at, check(1, "p", key, "q", key))
				if d.Limit != 1000 || d.Remaining != 499 {
					t.Errorf("a decision saw half of a change: %+v", d)
					return
				}
				bySide[d.Pair].Add(1)
			}
		})
	}
	for i := 0; i < 2000 || bySide[0].Load() == 0 || bySide[1].Load() == 0; i++ {
		table.DecideAtomic(at, swap[i%2], out)
	}
	done.Store(true)
	all.Wait()
}

// TestPoliciesAreDrainedAndLoaded checks that a loaded table has the policies and limiters of the drained one, and the
// same hash. A removed policy must be gone from the store.
func TestPoliciesAreDrainedAndLoaded(t *testing.T) {
	g := &policyTraffic{Rand: seeded(7), at: engine.Stamp{NowNs: 1e18}}
	table, stored := engine.NewTable(engine.Options{TrackChanges: true}), entries{}
	zone := &engine.Zone{Name: "Europe/Berlin",
		Changes: []engine.ZoneChange{{AtSec: -5, OffsetSec: 3600}, {AtSec: 1e9, OffsetSec: 7200}}}
	decideAt(table, g.at, setPolicy("calendar", engine.Policy{Limits: []engine.PolicyLimit{
		{Limit: engine.Limit{Algorithm: engine.FixedWindow, Mode: engine.Day, Max: 5}, Zone: zone},
	}}))
	for i := range 2000 {
		op := g.next()
		decideAt(table, g.at, op)
		g.pass()
		if i%97 != 0 {
			continue
		}
		require.NoError(t, table.Drain(64, into(t, stored)))
		again := engine.NewTable(engine.Options{Shards: 4})
		loadInto(t, again, g.at, stored)
		require.Equal(t, table.StateHash(g.at), again.StateHash(g.at), "after %d operations", i)
		require.Equal(t, table.Policies().Len(), again.Policies().Len())
	}
	table.Clear()
	require.NotZero(t, table.Policies().Len(), "policies must stay when limiters are cleared")
	for _, why := range []string{"they are stored again", "a round stores them as well"} {
		names := 0
		require.NoError(t, table.Drain(64, func(chunk []engine.Change) error { names += len(chunk); return nil }))
		require.Equal(t, table.Policies().Len(), names, why)
		require.Zero(t, table.Renew(0, 1<<30))
	}
}

// TestACheckHappensOnce checks that a repeated ID gets the same answer, including the limit that binds.
func TestACheckHappensOnce(t *testing.T) {
	at := engine.Stamp{NowNs: 1e18}
	table := engine.NewTable(engine.Options{})
	decideAt(table, at, setPolicy("wide", engine.Policy{Limits: []engine.PolicyLimit{quotaLimit(100)}}))
	decideAt(table, at, setPolicy("narrow", engine.Policy{Limits: []engine.PolicyLimit{quotaLimit(90), quotaLimit(9)}}))
	op := check(3, "wide", "k", "narrow", "j")
	op.ID = []byte("once")
	first := decideAt(table, at, op)
	require.Equal(t, engine.Decision{Pair: 1, Part: 1, Allowed: 1, Remaining: 6, ResetMs: -1, Limit: 9}, first)
	require.Equal(t, first, decideAt(table, at, op))
	require.EqualValues(t, 6, decideAt(table, at, check(0, "wide", "k", "narrow", "j")).Remaining)
}

// TestWithoutMemoryACheckTakesNothing checks that a check takes nothing if one of its limiters finds no memory.
func TestWithoutMemoryACheckTakesNothing(t *testing.T) {
	at := engine.Stamp{NowNs: 1e18}
	table := engine.NewTable(engine.Options{Shards: 1, MaxMemoryBytes: 1 << 20, WhenFull: engine.Deny})
	log := engine.PolicyLimit{Limit: engine.Limit{Algorithm: engine.SlidingLog, WindowNs: 1e12, Max: 100}}
	decideAt(table, at, setPolicy("p", engine.Policy{Limits: []engine.PolicyLimit{quotaLimit(1e6), log}}))
	require.EqualValues(t, 1, decideAt(table, at, check(1, "p", "known")).Allowed)
	full := 0
	for i := 0; i < 200_000 && full < 1000; i++ {
		at.NowNs += 10_000_000
		key := []string{"known", fmt.Sprint("new", i)}[i%2]
		before := [2]int64{usedOf(table, at, "policy|p|0|"+key), usedOf(table, at, "policy|p|1|"+key)}
		if decideAt(table, at, check(1, "p", key)).Status == engine.OutOfMemory {
			full++
			require.Equal(t, before,
				[2]int64{usedOf(table, at, "policy|p|0|"+key), usedOf(table, at, "policy|p|1|"+key)})
		}
	}
	require.NotZero(t, full)
}

func usedOf(t *engine.Table, at engine.Stamp, key string) int64 {
	info, _ := t.Inspect(at, []byte(key))
	return info.Used
}

// TestPoliciesAreInTheHash checks that a difference in one term of one policy changes the state hash.
func TestPoliciesAreInTheHash(t *testing.T) {
	at := engine.Stamp{NowNs: 1e18}
	seen := map[uint64]bool{engine.NewTable(engine.Options{}).StateHash(at): true}
	for _, p := range []engine.Policy{
		{Limits: []engine.PolicyLimit{quotaLimit(1)}}, {Limits: []engine.PolicyLimit{quotaLimit(2)}},
		{Limits: []engine.PolicyLimit{quotaLimit(1)}, Owner: "a"}, {Limits: []engine.PolicyLimit{quotaLimit(1)},
			Shadow: true}, {Limits: []engine.PolicyLimit{quotaLimit(1)}, Reserved: 1},
	} {
		table := engine.NewTable(engine.Options{})
		op := setPolicy("p", p)
		op.Policy.Own = true
		decideAt(table, at, op)
		require.False(t, seen[table.StateHash(at)], "%+v", p)
		seen[table.StateHash(at)] = true
	}
}

// TestManyPoliciesOfOneKey checks that one key can be used with the greatest number of policies. The index must
// spread their limiters, or this test takes very long.
func TestManyPoliciesOfOneKey(t *testing.T) {
	at, table := engine.Stamp{NowNs: 1e18}, engine.NewTable(engine.Options{})
	for i := range engine.MaxPolicies {
		name := fmt.Sprint("p", i)
		decideAt(table, at, setPolicy(
			name, engine.Policy{Limits: []engine.PolicyLimit{quotaLimit(9), quotaLimit(8), quotaLimit(7)}}))
		require.EqualValues(t, 6, decideAt(table, at, check(1, name, "k")).Remaining)
	}
	require.EqualValues(t, 3*engine.MaxPolicies, table.Len(at))
}

// TestPoliciesCheckedForTheirOwnNames checks keys with the names of their policies. The index must spread their
// limiters too, or this test takes very long.
func TestPoliciesCheckedForTheirOwnNames(t *testing.T) {
	at, table := engine.Stamp{NowNs: 1e18}, engine.NewTable(engine.Options{Shards: 1})
	for i := range engine.MaxPolicies {
		name := fmt.Sprint("p", i)
		decideAt(table, at, setPolicy(name, engine.Policy{Limits: []engine.PolicyLimit{quotaLimit(9)}}))
		require.EqualValues(t, 8, decideAt(table, at, check(1, name, name)).Remaining)
	}
	require.EqualValues(t, engine.MaxPolicies, table.Len(at))
}
