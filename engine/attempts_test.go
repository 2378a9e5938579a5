package engine_test

import (
	"bytes"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/race"
)

// attemptLimit delays from the second attempt on, and locks for a quarter of an hour at the eleventh.
func attemptLimit(mode engine.StrikeMode) engine.Limit {
	steps := []engine.Step{{Threshold: 2, PenaltyNs: 1e9, Delay: true}, {Threshold: 11, PenaltyNs: 900e9}}
	return engine.Limit{Algorithm: engine.Strike, Strikes: mode, WindowNs: 900e9, Max: 11,
		Steps: engine.MakeSteps(steps)}
}

// attempts returns the same attempt under a limit and under a policy with that limit.
func attempts(table *engine.Table, at engine.Stamp, mode engine.StrikeMode) map[string]engine.Op {
	l := attemptLimit(mode)
	decideAt(table, at, setPolicy("lockout", engine.Policy{Limits: []engine.PolicyLimit{{Limit: l}}}))
	decideAt(table, at, setPolicy("all", engine.Policy{Limits: []engine.PolicyLimit{quotaLimit(1e6)}}))
	return map[string]engine.Op{
		"take": {Key: []byte("login:42"), Limit: l, Cost: 1}, "check": check(1, "lockout", "43"),
		"check of two": check(1, "all", "x", "lockout", "44"),
	}
}

// TestNoMoreAttemptsThanTheLastThreshold checks that concurrent attempts never exceed the last threshold, and that
// one of them locks the key.
func TestNoMoreAttemptsThanTheLastThreshold(t *testing.T) {
	for _, mode := range []engine.StrikeMode{engine.Attempts, engine.Attempts | engine.Extend} {
		at, table := engine.Stamp{NowNs: 1e18}, engine.NewTable(engine.Options{})
		for name, op := range attempts(table, at, mode) {
			var admitted, lockouts atomic.Int64
			var threads sync.WaitGroup
			for i := range 200 {
				threads.Go(func() {
					for range 3 {
						var out [1]engine.Decision
						if i%2 == 0 {
							table.Decide(at, []engine.Op{op}, out[:])
						} else {
							table.DecideAtomic(at, []engine.Op{op}, out[:])
						}
						admitted.Add(out[0].Allowed)
						lockouts.Add(one(out[0].Locked != 0))
					}
				})
			}
			threads.Wait()
			require.EqualValues(t, 11, admitted.Load(), name)
			require.EqualValues(t, 1, lockouts.Load(), name)
		}
		stats := table.Stats(at)
		require.EqualValues(t, 3, stats.Lockouts)
		require.EqualValues(t, 3*10, stats.Delays)
	}
}

// TestDenialsOfExtendedStrikes checks that Denials never answers a strike which extends its penalty, because that
// strike must reach the log.
func TestDenialsOfExtendedStrikes(t *testing.T) {
	for mode, answered := range map[engine.StrikeMode]bool{engine.Attempts: true,
		engine.Attempts | engine.Extend: false} {
		at, table := engine.Stamp{NowNs: 1e18}, engine.NewTable(engine.Options{})
		for name, op := range attempts(table, at, mode) {
			for range 11 {
				require.Equal(t, []bool{false}, askDenials(t, table, at, []engine.Op{op}).denied)
				require.EqualValues(t, 1, decideAt(table, at, op).Allowed, name)
			}
			at.NowNs += 60e9
			a := askDenials(t, table, at, []engine.Op{op})
			require.Equal(t, []bool{answered}, a.denied, name)
			d := decideAt(table, at, op)
			require.Zero(t, d.Allowed)
			require.Equal(t, answered, d.RetryMs == 840_000, "%s: %d", name, d.RetryMs)
		}
	}
	at, table := engine.Stamp{NowNs: 1e18}, engine.NewTable(engine.Options{})
	op := attempts(table, at, engine.Extend)["take"]
	decideAt(table, at, engine.Op{Code: engine.OpBlock, Key: op.Key, TTLNs: 1e9})
	require.Equal(t, []bool{true}, askDenials(t, table, at, []engine.Op{op}).denied,
		"no strike extends a block, so it can be answered")
}

// TestDenialsBehindForgiveness checks that a denial behind RL.FORGIVE of its key in the same batch is not answered
// early. Other keys are not affected.
func TestDenialsBehindForgiveness(t *testing.T) {
	at, table := engine.Stamp{NowNs: 1e18}, engine.NewTable(engine.Options{})
	attempts(table, at, engine.Attempts)
	for range 11 {
		for _, key := range append([]string{"42"}, otherKeys...) {
			decideAt(table, at, check(1, "lockout", key))
		}
	}
	forgive := engine.Op{Code: engine.OpForgive, Key: []byte("42"), Text: []byte("lockout"), Cost: 1}
	requireForOne(t, []bool{false, false, true}, func(other string) []bool {
		return askDenials(t, table, at,
			[]engine.Op{forgive, check(1, "lockout", "42"), check(1, "lockout", other)}).denied
	})
}

// TestExtendedStrikesAreBounded checks that strikes during a lock take no more memory than the threshold allows, in
// the table and in a store.
func TestExtendedStrikesAreBounded(t *testing.T) {
	at, table := engine.Stamp{NowNs: 1e18}, metaTable(1)
	stored := entries{}
	drain := func() { require.NoError(t, table.Drain(100, into(t, stored))) }
	for _, op := range attempts(table, at, engine.Extend) {
		for i := range 2000 {
			if decideAt(table, at, op); i%7 == 0 {
				drain()
			}
			at.NowNs += 1e6 + 1
		}
	}
	drain()
	for _, name := range []string{"login:42", "policy|lockout|0|43", "policy|lockout|0|44"} {
		info, _ := table.Inspect(at, []byte(name))
		require.EqualValues(t, 11, info.Used, name)
		require.Less(t, info.Bytes, 500, name)
	}
	require.EqualValues(t, 11, usedOf(table, at, "policy|all|0|x"), "denied checks must not count in any other limit")
	again := loaded(t, at, stored, 1)
	require.Equal(t, table.StateHash(at), again.StateHash(at))
	info, _ := again.Inspect(at, []byte("login:42"))
	require.EqualValues(t, 11, info.Used)
}

// TestWithoutMemoryAPenaltyIsNotExtended checks that a denial without free memory neither extends the penalty nor
// counts.
func TestWithoutMemoryAPenaltyIsNotExtended(t *testing.T) {
	at := engine.Stamp{NowNs: 1e18}
	table := engine.NewTable(engine.Options{Shards: 1, MaxMemoryBytes: 1 << 20, WhenFull: engine.Deny})
	ops := attempts(table, at, engine.Extend)
	for _, op := range ops {
		for range 11 {
			decideAt(table, at, op)
		}
	}
	for i := range 200_000 { // until the memory is full
		if decideAt(table, at, check(1, "all", fmt.Sprint("new", i))).Status == engine.OutOfMemory {
			break
		}
	}
	at.NowNs += 60e9
	for name, op := range ops {
		op.Cost = engine.MaxLogUnits // a record that needs a block
		for range 50 {
			d := decideAt(table, at, op)
			require.Equal(t, engine.OK, d.Status, name)
			require.Zero(t, d.Allowed, name)
		}
	}
}

// TestStrikeModesOfOthersAreRefused checks that only strike limits may have a strike mode, and that a mode survives a
// store.
func TestStrikeModesOfOthersAreRefused(t *testing.T) {
	for name, l := range map[string]engine.Limit{
		"a mode that is none": attemptLimit(4),
		"attempts of a bucket": {Algorithm: engine.TokenBucket, Strikes: engine.Attempts,
			Rate: engine.Rate{Units: 1, PerNs: 1}, Max: 1},
	} {
		p := engine.Policy{Name: "p", Limits: []engine.PolicyLimit{{Limit: l}}}
		require.ErrorIs(t, p.Validate(), engine.ErrPolicy, name)
		_, err := engine.DecodePolicy("p", p.Append(nil))
		require.ErrorIs(t, err, engine.ErrStored, name)
	}
	for _, mode := range []engine.StrikeMode{0, engine.Attempts, engine.Extend, engine.Attempts | engine.Extend} {
		p := &engine.Policy{Name: "p", Limits: []engine.PolicyLimit{{Limit: attemptLimit(mode)}}}
		require.NoError(t, p.Validate())
		again, err := engine.DecodePolicy("p", p.Append(nil))
		require.NoError(t, err)
		require.Equal(t, p.Limits, again.Limits)
	}
	at, table, stored := engine.Stamp{NowNs: 1e18}, metaTable(1), entries{}
	decideAt(table, at, engine.Op{Key: []byte("k"), Limit: quotaLimit(9).Limit, Cost: 1})
	require.NoError(t, table.Drain(100, into(t, stored)))
	for key, value := range stored {
		err := loadOne(metaTable(1), at, []byte(key), value.values[0])
		require.NoError(t, err)
		spoiled := bytes.Clone(value.values[0])
		spoiled[1] |= byte(engine.Attempts) << 4
		err = loadOne(metaTable(1), at, []byte(key), spoiled)
		require.ErrorIs(t, err, engine.ErrStored)
	}
}

// TestExtendedPenaltiesMakeRoom checks an extension that evicts another limit of the same check to get memory.
// Neither entry may then be written at its old place.
func TestExtendedPenaltiesMakeRoom(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	at := engine.Stamp{NowNs: 1e18}
	table := engine.NewTable(engine.Options{Shards: 1, MaxMemoryBytes: 1 << 20, TrackChanges: true})
	limits := make([]engine.PolicyLimit, engine.MaxPolicyLimits)
	for i := range limits {
		steps := []engine.Step{{Threshold: 1, PenaltyNs: 900e9}, {Threshold: 3000, PenaltyNs: 900e9}}
		limits[i].Limit = engine.Limit{Algorithm: engine.Strike, Strikes: engine.Extend, WindowNs: 900e9, Max: 3000,
			Steps: engine.MakeSteps(steps)}
	}
	decideAt(table, at, setPolicy("many", engine.Policy{Limits: limits}))
	stored := entries{}
	for i := range 30_000 {
		at.NowNs += 1e6
		if i%10 == 0 { // so that a denied check has another limit to put in force
			bucket := engine.Limit{Algorithm: engine.TokenBucket, Rate: engine.Rate{Units: 1, PerNs: 3600e9},
				Max: 1 + int64(i/10%2)}
			decideAt(table, at, setPolicy("bucket", engine.Policy{Limits: []engine.PolicyLimit{{Limit: bucket}}}))
		}
		bucket := fmt.Sprint("b", i%7)
		decideAt(table, at, check(1, "bucket", bucket))
		decideAt(table, at, check(1, "many", fmt.Sprint("k", i%17), "many", fmt.Sprint("k", 17+i%13)))
		decideAt(table, at, check(1, "many", fmt.Sprint("k", i%17), "many", fmt.Sprint("k", 17+i%13), "bucket", bucket))
		if i%100 == 0 {
			require.NoError(t, table.Drain(100, into(t, stored)))
			require.LessOrEqual(t, table.MemoryBytes(), int64(1<<20))
		}
	}
	require.Positive(t, table.Stats(at).Evicted)
	require.NoError(t, table.Drain(100, into(t, stored)))
	require.Equal(t, table.StateHash(at), loaded(t, at, stored, 1).StateHash(at))
}
