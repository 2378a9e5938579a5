package engine_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/race"
)

// TestACursorFitsEveryTableOfASeed continues a scan in another table at each call. The tables have other numbers of
// shards and other keys that come and go, and some are made anew. Every key that all have is visited.
func TestACursorFitsEveryTableOfASeed(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	at, rng := engine.Stamp{NowNs: 1e18}, rand.New(rand.NewPCG(39, 1))
	for round := range 4 {
		seed := engine.NewHashSeed()
		made := func(shards int) *engine.Table {
			return engine.NewTable(engine.Options{Shards: shards, HashSeed: seed})
		}
		tables := []*engine.Table{made(1), made(16), made(1024)}
		lasting := map[string]bool{}
		for _, table := range tables {
			lasting = fillForScan(table, at)
		}
		seen := map[string]bool{}
		for cursor, calls := uint64(0), 0; calls == 0 || cursor != 0; calls++ {
			n := rng.IntN(len(tables))
			cursor = tables[n].Scan(at, cursor, 1+rng.IntN(100), func(key []byte, _ engine.Algorithm) {
				seen[string(key)] = true
			})
			require.Less(t, cursor, uint64(1)<<engine.CursorBits)
			require.Less(t, calls, 3*len(lasting))
			for range 300 { // a table grows by tens of times and shrinks again
				op := engine.Op{Key: keyOf(rng.IntN(100_000)), Limit: bucketOf(1, hourNs, 10), Cost: 1}
				if calls/200%2 == 1 {
					op = engine.Op{Code: engine.OpReset, Key: op.Key}
				}
				decideAt(tables[calls%2], at, op)
			}
			if calls%500 == 499 {
				tables[n] = made(1 << rng.IntN(9))
				fillForScan(tables[n], at)
			}
		}
		for key := range lasting {
			require.True(t, seen[key], "round %d: %q", round, key)
		}
	}
}

// fillForScan adds keys of every kind that a scan shows, and returns them.
func fillForScan(table *engine.Table, at engine.Stamp) map[string]bool {
	keys := map[string]bool{}
	decideAt(table, at, setPolicy("four", fourLimits(5)))
	decideAt(table, at, setPolicy("one", engine.Policy{Limits: fourLimits(5).Limits[:1]}))
	for i := range 5000 {
		key := fmt.Sprint("user:", i)
		switch i % 4 {
		case 0:
			decideAt(table, at, engine.Op{Key: []byte(key), Limit: bucketOf(1, hourNs, 10), Cost: 1})
		case 1:
			decideAt(table, at, engine.Op{Code: engine.OpBlock, Key: []byte(key), TTLNs: engine.Never})
		case 2:
			decideAt(table, at, check(1, "four", key))
			for limit := range 4 {
				keys[string(engine.LimiterName("four", limit, []byte(key)))] = true
			}
			continue
		case 3:
			decideAt(table, at, check(1, "one", key))
			key = string(engine.LimiterName("one", 0, []byte(key)))
		}
		keys[key] = true
	}
	return keys
}

// TestACursorOfAnOlderVersionBeginsAgain checks that a cursor with more bits than today's starts a scan.
func TestACursorOfAnOlderVersionBeginsAgain(t *testing.T) {
	table, at := metaTable(16), engine.Stamp{NowNs: 1e18}
	decideAt(table, at, engine.Op{Key: []byte("k"), Limit: bucketOf(1, hourNs, 10), Cost: 1})
	n := 0
	require.Zero(t, table.Scan(at, 1<<47, 1000, func([]byte, engine.Algorithm) { n++ }))
	require.Equal(t, 1, n)
}

// TestKeysAreSpreadEvenly checks the bits of hashes that choose shard, segment, group and tag, by the order of a scan:
// similar keys are as evenly spread as random numbers would be.
func TestKeysAreSpreadEvenly(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	for _, form := range []string{"%d", "user:%08d", "%08d:login", "a-rather-long-prefix-of-many-keys/%d/with-an-end"} {
		table, at := engine.NewTable(engine.Options{Shards: 256}), engine.Stamp{NowNs: 1e18}
		const keys = 100_000
		for i := range keys {
			decideAt(table, at, engine.Op{Key: fmt.Appendf(nil, form, i), Limit: bucketOf(1, hourNs, 10), Cost: 1})
		}
		most, n := 0, 0
		shard := uint64(0)
		for cursor, calls := uint64(0), 0; calls == 0 || cursor != 0; calls++ {
			cursor = table.Scan(at, cursor, 1, func([]byte, engine.Algorithm) { n++ })
			if now := cursor >> (engine.CursorBits - 8); now != shard {
				most, n, shard = max(most, n), 0, now
			}
		}
		// 390 keys of a shard are expected, with a standard deviation of 20.
		require.Less(t, most, 560, "%s: a shard has %d keys", form, most)
	}
}
