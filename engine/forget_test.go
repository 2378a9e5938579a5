package engine_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/race"
)

// TestForget checks that an eviction drops the limiter, keeps its block, and reports the forgiven units.
func TestForget(t *testing.T) {
	forAllOfTen(t, func(t *testing.T, b *probe, l engine.Limit) {
		forget := engine.Op{Code: engine.OpForget}
		require.Zero(t, b.do(forget).Allowed, "there is nothing to evict")
		require.EqualValues(t, 10, b.admits(l, 10))
		b.do(engine.Op{Code: engine.OpBlock, TTLNs: 9 * dayNs, Text: []byte("abuse")})
		require.Equal(t, engine.Decision{Allowed: 1}, b.do(forget))
		require.Zero(t, b.do(forget).Allowed)

		at := engine.Stamp{NowNs: b.nowNs}
		s := b.table.Stats(at)
		require.EqualValues(t, 1, s.Evicted)
		require.EqualValues(t, 10, s.ForgivenUnits)
		require.Zero(t, s.Expired)
		info, found := b.table.Inspect(at, []byte("key"))
		require.True(t, found && info.Blocked)
		require.Equal(t, engine.NoAlgorithm, info.Algorithm)
	})
}

// TestForgetOfIdle checks that evicting an idle limiter counts it as expired.
func TestForgetOfIdle(t *testing.T) {
	b := newProbe()
	b.take(bucketOf(1, 1e9, 10), 1)
	b.nowNs += 1e9
	require.False(t, b.table.Has(engine.Stamp{NowNs: b.nowNs}, []byte("key")))
	require.Zero(t, b.do(engine.Op{Code: engine.OpForget}).Allowed)
	s := b.table.Stats(engine.Stamp{NowNs: b.nowNs})
	require.Zero(t, s.Evicted)
	require.EqualValues(t, 1, s.Expired)
}

// TestForgetOfCounterBelowZero checks that evicting a negative counter forgives no negative units.
func TestForgetOfCounterBelowZero(t *testing.T) {
	b := newProbe()
	b.do(engine.Op{Code: engine.OpIncr, Incr: &engine.Incr{By: -7, Lower: -100}})
	require.EqualValues(t, 1, b.do(engine.Op{Code: engine.OpForget}).Allowed)
	s := b.table.Stats(engine.Stamp{NowNs: b.nowNs})
	require.EqualValues(t, 1, s.Evicted)
	require.Zero(t, s.ForgivenUnits)
}

// TestReplicasForgetAlike checks that every replica evicts the victims that a leader sampled, whatever each replica
// has already collected.
func TestReplicasForgetAlike(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	for seed := range uint64(20) {
		leader, follower := hashTable(16), hashTable(2)
		for _, b := range someBlocks(seed, 50, 200) {
			leader.Victims(b.at, math.MaxInt64, 10, func(key, id []byte) {
				b.ops = append(b.ops, engine.Op{Code: engine.OpForget, Key: key, ID: id})
			})
			got, want := make([]engine.Decision, len(b.ops)), make([]engine.Decision, len(b.ops))
			leader.Decide(b.at, b.ops, got)
			follower.Decide(b.at, b.ops, want)
			leader.Collect(b.at, 1000)
			requireSame(t, "leader", []block{b}, want, got)
			require.Equal(t, follower.StateHash(b.at), leader.StateHash(b.at))
		}
	}
}

// TestVictimsAreNearIdle checks that victims are keys with one used unit. Offenders, blocks and remembered IDs stay.
func TestVictimsAreNearIdle(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	const few, many = 200, 20_000
	table, at := engine.NewTable(engine.Options{Shards: 16}), engine.Stamp{NowNs: 1e18}
	for n := range few {
		decideOne(table, step{at, engine.Op{Key: keyOf(n), Limit: bucketOf(1, 1e9, 100), Cost: 100, ID: []byte("id")}})
		decideOne(table, step{at, engine.Op{Code: engine.OpBlock, Key: keyOf(-1 - n), TTLNs: 1}})
	}
	require.Zero(t, flood(table, at.NowNs, 0, many))
	before := table.CompactBytes()
	for gone := 0; gone < many*3/4; {
		table.Victims(at, math.MaxInt64, 100, func(key, id []byte) {
			require.True(t, len(id) > 0 || table.Has(at, key))
			gone += int(decideOne(table, step{at, engine.Op{Code: engine.OpForget, Key: key}}).Allowed)
		})
	}
	const pages = 16 * 2 * 16 << 10 // bytes of two partly filled pages in each of 16 shards
	require.Less(t, table.CompactBytes(), before-many*3/4*32+pages, "each evicted key must free at least 32 bytes")
	require.Equal(t, table.Stats(at).MemoryBytes, table.MemoryBytes())
	for n := range few {
		require.True(t, table.Has(at, keyOf(n)), "offender %d", n)
		_, blocked := table.Inspect(at, keyOf(-1-n))
		require.True(t, blocked)
	}
}

// TestVictimsOfSmallTables checks that an empty table has no victims, and that a table with one key names it once.
func TestVictimsOfSmallTables(t *testing.T) {
	table, at := engine.NewTable(engine.Options{Shards: 4}), engine.Stamp{NowNs: 1e18}
	table.Victims(at, math.MaxInt64, 10, func(_, _ []byte) { t.Error("an empty table must have no victim") })
	decideOne(table, step{at, engine.Op{Key: keyOf(1), Limit: bucketOf(1, 1e9, 100), Cost: 1}})
	named := 0
	table.Victims(at, math.MaxInt64, 10, func(key, id []byte) {
		require.Equal(t, keyOf(1), key)
		named++
	})
	require.Equal(t, 1, named)
}
