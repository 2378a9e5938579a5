package engine_test

import (
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/offheap"
	"github.com/weir-project/weir/internal/race"
)

// heldBytes drops a table and returns how many bytes become free, on the heap and outside it. That must be the bytes
// that the table counts, up to a part of them. The memory of a table becomes free some time after a collection.
func heldBytes(t *testing.T, table **engine.Table, tolerance float64) (held int64) {
	live := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc) + offheap.InUse()
	}
	awaitCleanups()
	counted, full := (*table).MemoryBytes(), live()
	*table = nil
	require.Eventually(t, func() bool {
		held = full - live()
		return math.Abs(float64(held-counted)) <= tolerance*float64(counted)
	}, 10*time.Second, time.Millisecond, "%d bytes counted", counted)
	return held
}

// awaitCleanups waits until the memory of collected tables is unmapped. Cleanups run in the order of collections.
func awaitCleanups() {
	type object struct{ _ *int }
	for range 3 {
		done := make(chan struct{})
		runtime.AddCleanup(&object{}, func(done chan struct{}) { close(done) }, done)
		runtime.GC()
		<-done
	}
}

// TestClearGivesMemoryBack checks that an emptied table gives all its memory back, so that filling and emptying it
// again takes no more.
func TestClearGivesMemoryBack(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	awaitCleanups()
	before := offheap.InUse()
	table := fill(100_000, engine.Options{})
	if offheap.InUse() == 0 {
		t.Skip("pages are objects of the heap on this system")
	}
	table.Clear()
	empty := offheap.InUse()
	require.LessOrEqual(t, empty-before, table.MemoryBytes())
	for range 3 {
		for n := range 50_000 {
			op := engine.Op{Key: keyOf(n), Limit: bucketOf(1, 1e9, 100), Cost: 50}
			decideOne(table, step{engine.Stamp{NowNs: 1e18}, op})
		}
		require.Greater(t, offheap.InUse(), empty)
		table.Clear()
		require.Equal(t, empty, offheap.InUse())
	}
	runtime.KeepAlive(table)
}

// fill asks n keys of 15 bytes once each.
func fill(n int, o engine.Options) *engine.Table {
	table := engine.NewTable(o)
	const batch = 1000
	ops, out := make([]engine.Op, batch), make([]engine.Decision, batch)
	keys := make([]byte, 0, 15*batch)
	for from := 0; from < n; from += batch {
		keys = keys[:0]
		for i := range ops {
			keys = fmt.Appendf(keys, "user:%010d", from+i)
			ops[i] = engine.Op{Key: keys[15*i : 15*i+15], Limit: bucketOf(1, 1e9, 100), Cost: 50}
		}
		table.Decide(engine.Stamp{NowNs: 1e18}, ops, out)
	}
	return table
}

// TestMemoryOfTokenBuckets checks that a million buckets take at most 54 bytes each, with their keys and the index,
// once their changes are saved.
func TestMemoryOfTokenBuckets(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	const keys = 1_000_000
	for name, o := range map[string]engine.Options{"plain": {}, "saved": {TrackChanges: true}} {
		table := fill(keys, o)
		require.NoError(t, table.Drain(1000, func([]engine.Change) error { return nil }))
		stats := table.Stats(engine.Stamp{NowNs: 1e18})
		require.EqualValues(t, keys, stats.Keys)
		perKey := float64(heldBytes(t, &table, 0.1)) / keys
		t.Logf("%s: %.1f bytes a key, %.1f by its own account", name, perKey,
			float64(stats.MemoryBytes)/keys)
		require.LessOrEqual(t, perKey, 54.0, name)
	}
}

// TestMemoryOfSlidingLogs checks that full logs of 100 units at different times take at most 12 bytes a unit,
// including keys.
func TestMemoryOfSlidingLogs(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	const keys, units = 20_000, 100
	table := engine.NewTable(engine.Options{})
	out := make([]engine.Decision, 1)
	limit := windowOf(engine.SlidingLog, hourNs, units)
	rng := seeded(5)
	for unit := range int64(units) {
		for k := range keys {
			at := engine.Stamp{NowNs: 1e18 + unit*30e9 + int64(k)*1e6 + rng.Int64N(1e6)}
			table.Decide(at, []engine.Op{{Key: fmt.Appendf(nil, "user:%010d", k), Limit: limit, Cost: 1}}, out)
		}
	}
	stats := table.Stats(engine.Stamp{NowNs: 1e18})
	perUnit := float64(heldBytes(t, &table, 0.1)) / (keys * units)
	t.Logf("%.2f bytes a unit, %.2f by its own account", perUnit, float64(stats.MemoryBytes)/(keys*units))
	require.LessOrEqual(t, perUnit, 12.0)
	require.EqualValues(t, keys*units, stats.Admitted[engine.SlidingLog])
}

// TestMemoryComesBack checks that the memory of a million idle keys is freed with bounded work.
func TestMemoryComesBack(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	const keys = 1_000_000
	table := fill(keys, engine.Options{})
	full := table.Stats(engine.Stamp{NowNs: 1e18}).MemoryBytes
	at := engine.Stamp{NowNs: 1e18 + hourNs}
	for range 10 * keys / (256 * 100) {
		table.Collect(at, 100)
	}
	// Only an index of few segments and a few spare pages remain.
	s := table.Stats(at)
	require.EqualValues(t, keys, s.Expired)
	require.Less(t, s.MemoryBytes, full/8)
	require.Zero(t, s.Keys)
}

// TestMemoryOfKeysUsedAgain checks that keys which are reused just after they became idle do not keep their old
// memory.
func TestMemoryOfKeysUsedAgain(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	table := engine.NewTable(engine.Options{Shards: 1})
	strike := windowOf(engine.Strike, 1e6, 1_000)
	strike.Steps = engine.MakeSteps([]engine.Step{{Threshold: 1_000, PenaltyNs: 1}})
	limits := []engine.Limit{windowOf(engine.SlidingLog, 1e6, 1_000), strike, windowOf(engine.Concurrency, 0, 1_000)}
	at, most := engine.Stamp{NowNs: 1e18}, int64(0)
	for round := range int64(2_000) {
		at.NowNs = 1e18 + round*1e6 + 100*round
		for n, l := range limits {
			for i := range int64(50) {
				op := engine.Op{Key: keyOf(n), Limit: l, Cost: 2, Text: keyOf(int(i)), TTLNs: 1e6 - i}
				decideOne(table, step{engine.Stamp{NowNs: at.NowNs + i}, op})
			}
		}
		if round == 20 {
			most = table.Stats(at).MemoryBytes
		}
	}
	require.LessOrEqual(t, table.Stats(at).MemoryBytes, most+most/4)
}
