package engine_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/race"
)

const memoryBound = 4 << 20

// flood asks n invented keys once each. Another value of first invents other keys.
func flood(table *engine.Table, nowNs int64, first, n int) (refused int) {
	out := make([]engine.Decision, 1)
	for i := range n {
		op := engine.Op{Key: keyOf(1<<40 + first + i), Limit: bucketOf(1, 1e9, 100), Cost: 1}
		table.Decide(engine.Stamp{NowNs: nowNs}, []engine.Op{op}, out)
		if out[0].Status == engine.OutOfMemory {
			refused++
		}
	}
	return refused
}

// TestEvictionKeepsOffenders floods a bounded table with invented keys that have used one unit each. Memory must stay
// bounded. Offenders, which are keys that used up their limit before or during the flood, must stay denied. The flood
// starts near powers of two of limiter time.
func TestEvictionKeepsOffenders(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	for _, nowNs := range []int64{1 << 60, 1<<60 - 1e6, 1<<60 + 1<<30 - 1e6, 1<<60 + 1<<36 - 1e6,
		1<<60 + 1<<42 - 1e6, 1e18} {
		t.Run(fmt.Sprint(nowNs), func(t *testing.T) { keepsOffenders(t, nowNs) })
	}
}

func keepsOffenders(t *testing.T, nowNs int64) {
	const offenders, rounds, perRound = 400, 40, 5_000
	table := engine.NewTable(engine.Options{MaxMemoryBytes: memoryBound, Shards: 16})
	ask := func(n, cost, atNs int64) engine.Decision {
		op := engine.Op{Key: keyOf(int(n)), Limit: bucketOf(1, 1e9, 100), Cost: cost}
		return decideOne(table, step{engine.Stamp{NowNs: atNs}, op})
	}
	for n := range int64(offenders / 2) { // these keys use one unit first, as any other key
		require.EqualValues(t, 1, ask(n, 1, nowNs-900e6).Allowed)
		require.EqualValues(t, 1, ask(n, 99, nowNs).Allowed)
	}
	for round := range rounds {
		require.Zero(t, flood(table, nowNs, round*perRound, perRound))
		for n := range int64(offenders / 2 / rounds) {
			require.EqualValues(t, 1, ask(int64(offenders/2+round*5)+n, 100, nowNs).Allowed)
		}
		require.LessOrEqual(t, table.Stats(engine.Stamp{NowNs: nowNs}).MemoryBytes, int64(memoryBound))
	}
	forgotten := 0
	for n := range int64(offenders) {
		forgotten += int(ask(n, 1, nowNs).Allowed)
	}
	require.Zero(t, forgotten, "no offender may be admitted again")
	s := table.Stats(engine.Stamp{NowNs: nowNs})
	require.Positive(t, s.Evicted)
	require.Equal(t, s.Evicted, s.ForgivenUnits, "each evicted key must have used one unit")
	require.EqualValues(t, memoryBound, s.MaxMemoryBytes)
}

// TestEvictionOfDenialsFirst checks that a flood of denied requests with IDs evicts remembered answers, and no
// limiter.
func TestEvictionOfDenialsFirst(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	const nowNs, limiters = int64(1e18), 5_000
	table := engine.NewTable(engine.Options{MaxMemoryBytes: memoryBound, Shards: 4})
	ask := func(op engine.Op) engine.Decision {
		return decideOne(table, step{engine.Stamp{NowNs: nowNs}, op})
	}
	for n := range limiters { // they become idle long before a remembered answer
		require.EqualValues(t, 1, ask(engine.Op{Key: keyOf(n), Limit: bucketOf(1, 1e9, 1), Cost: 1}).Allowed)
	}
	for n := range 100_000 {
		id := fmt.Appendf(nil, "attempt %d", n)
		require.Zero(t, ask(engine.Op{Key: keyOf(n % 10), Limit: bucketOf(1, 1e9, 1), Cost: 1, ID: id}).Allowed)
	}
	for n := range limiters {
		require.Zero(t, ask(engine.Op{Key: keyOf(n), Limit: bucketOf(1, 1e9, 1), Cost: 1}).Allowed, "limiter %d", n)
	}
	s := table.Stats(engine.Stamp{NowNs: nowNs})
	require.Positive(t, s.Evicted)
	require.Zero(t, s.ForgivenUnits)
}

// TestEvictionForgivesLittle checks that the least used keys are evicted when keys with very different usage compete.
func TestEvictionForgivesLittle(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	const nowNs = int64(1e18)
	table := engine.NewTable(engine.Options{MaxMemoryBytes: memoryBound, Shards: 4})
	rng, asked := seeded(3), int64(0)
	const keys = 150_000
	for n := range keys {
		op := engine.Op{Key: keyOf(n), Limit: bucketOf(1, 60e9, 100), Cost: 1 + rng.Int64N(100)}
		require.EqualValues(t, 1, decideOne(table, step{engine.Stamp{NowNs: nowNs}, op}).Allowed)
		asked += op.Cost
	}
	s := table.Stats(engine.Stamp{NowNs: nowNs})
	forgiven, kept := float64(s.ForgivenUnits)/float64(s.Evicted), float64(asked-s.ForgivenUnits)/float64(s.Keys)
	t.Logf("evicted %d keys of %.1f units, kept %d of %.1f", s.Evicted, forgiven, s.Keys, kept)
	require.EqualValues(t, keys, s.Evicted+s.Keys)
	require.Greater(t, kept, forgiven*1.4)
}

// TestDenyWhenFull checks that a full table refuses new keys with OutOfMemory and still serves the others.
func TestDenyWhenFull(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	const nowNs = int64(1e18)
	table := engine.NewTable(engine.Options{MaxMemoryBytes: memoryBound, WhenFull: engine.Deny, Shards: 4})
	old := engine.Op{Key: []byte("old"), Limit: bucketOf(1, 60e9, 100), Cost: 1}
	require.EqualValues(t, 1, decideOne(table, step{engine.Stamp{NowNs: nowNs}, old}).Allowed)
	require.Positive(t, flood(table, nowNs, 0, 400_000))

	s := table.Stats(engine.Stamp{NowNs: nowNs})
	require.LessOrEqual(t, s.MemoryBytes, int64(memoryBound))
	require.Zero(t, s.Evicted)
	d := decideOne(table, step{engine.Stamp{NowNs: nowNs}, old})
	require.Equal(t, engine.OK, d.Status)
	require.EqualValues(t, 98, d.Remaining)
	require.Zero(t, flood(table, nowNs+hourNs, 0, 1000), "memory must become free when keys become idle")
}

// TestEvictionIsForWhatIsAdded checks that operations which need no new memory evict nothing, whatever their size:
// renewals of a lease, denied requests and looks.
func TestEvictionIsForWhatIsAdded(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	const nowNs = int64(1e18)
	for _, l := range []engine.Limit{windowOf(engine.Concurrency, 0, 8), windowOf(engine.SlidingLog, hourNs, 100),
		bucketOf(1, hourNs, 10)} {
		table := engine.NewTable(engine.Options{MaxMemoryBytes: memoryBound, Shards: 4})
		require.Zero(t, flood(table, nowNs, 0, 100_000))
		before := table.Stats(engine.Stamp{NowNs: nowNs})
		require.Positive(t, before.Evicted)
		ask := func(key, holder int, cost int64) {
			op := engine.Op{Key: fmt.Appendf(nil, "a key longer than any of the flood %d", key), Limit: l, Cost: cost}
			op.Text, op.TTLNs = keyOf(holder), hourNs
			require.Equal(t, engine.OK, decideOne(table, step{engine.Stamp{NowNs: nowNs}, op}).Status)
		}
		for n := range 2_000 {
			key := n % 10
			ask(key, n%(1+key), 1) // key 7 has up to eight holders, which renew their leases
			ask(key, 100+n, 1000)
			ask(key, n, 0)
		}
		after := table.Stats(engine.Stamp{NowNs: nowNs})
		require.Less(t, after.Evicted-before.Evicted, int64(1_000), "%v", l.Algorithm)
	}
}

// TestMemoryOfLimits checks that a large number of different limits counts towards the bound.
func TestMemoryOfLimits(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	const nowNs, keys = int64(1e18), 50_000
	for _, full := range []engine.FullPolicy{engine.LeastHarm, engine.Deny} {
		table := engine.NewTable(engine.Options{MaxMemoryBytes: memoryBound, WhenFull: full, Shards: 4})
		refused := flood(table, nowNs, 0, keys)
		for n := range 2 * keys {
			l := bucketOf(1, 1e9, int64(1_000+n))
			// every second one is denied
			op := engine.Op{Key: keyOf(1<<40 + n%keys), Limit: l, Cost: max(1, int64(n%2)*l.Max)}
			if decideOne(table, step{engine.Stamp{NowNs: nowNs}, op}).Status == engine.OutOfMemory {
				refused++
			}
		}
		s := table.Stats(engine.Stamp{NowNs: nowNs})
		require.Less(t, s.MemoryBytes, int64(memoryBound+1<<10), "only the last step may exceed the bound")
		require.Greater(t, s.Keys, int64(5_000))
		t.Logf("%d keys, %d evicted, %d refused", s.Keys, s.Evicted, refused)
	}
}

// TestBlockThatFindsNoRoom checks that an existing block stays in force when its replacement finds no memory.
func TestBlockThatFindsNoRoom(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	const nowNs = int64(1e18)
	table := engine.NewTable(engine.Options{MaxMemoryBytes: memoryBound, WhenFull: engine.Deny, Shards: 1})
	block := func(reason string) engine.Status {
		op := engine.Op{Code: engine.OpBlock, Key: []byte("bad"), TTLNs: hourNs, Text: []byte(reason)}
		return decideOne(table, step{engine.Stamp{NowNs: nowNs}, op}).Status
	}
	require.Equal(t, engine.OK, block(""))
	require.Positive(t, flood(table, nowNs, 0, 400_000))
	require.Equal(t, engine.OutOfMemory, block("a reason that needs a longer slot"))
	info, found := table.Inspect(engine.Stamp{NowNs: nowNs}, []byte("bad"))
	require.True(t, found && info.Blocked)
}
