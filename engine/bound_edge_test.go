package engine_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/race"
)

// longKey returns a key of n bytes.
func longKey(number, n int) []byte {
	key := fmt.Appendf(make([]byte, 0, n), "%d ", number)
	return append(key, make([]byte, n-len(key))...)
}

// TestNoMemoryIsNotRemembered checks an operation that is refused for lack of memory and then repeated with its ID. The
// repetition is decided anew. At the first attempt, memory was left for the remembered answer but not for the entry.
func TestNoMemoryIsNotRemembered(t *testing.T) {
	const length = 200
	table := engine.NewTable(engine.Options{MaxMemoryBytes: 1 << 20, WhenFull: engine.Deny, Shards: 1})
	at, limit := engine.Stamp{NowNs: 1e18}, bucketOf(1, boundHourNs, 10)
	ask := func(number int, id string) engine.Status {
		op := engine.Op{Key: longKey(number, length), Limit: limit, Cost: 1, ID: []byte(id)}
		return decideOne(table, step{at, op}).Status
	}
	require.Equal(t, engine.OK, ask(0, "one"), "the first ID must reserve memory for later IDs")
	n := 1
	for ask(n, "") == engine.OK {
		n++
	}
	require.Equal(t, engine.OutOfMemory, ask(n, "two"))
	require.EqualValues(
		t, 1, decideOne(table, step{at, engine.Op{Code: engine.OpReset, Key: longKey(1, length)}}).Allowed)
	require.Equal(t, engine.OK, ask(n, "two"))
}

// TestBlocksAreNotEvicted checks that a flood of keys never evicts an administrative block. Memory full of blocks must
// be reported as full.
func TestBlocksAreNotEvicted(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	const blocks, bound = 100, 1 << 20
	table := engine.NewTable(engine.Options{MaxMemoryBytes: bound, Shards: 1})
	at := engine.Stamp{NowNs: 1e18}
	block := func(number int) engine.Status {
		op := engine.Op{Code: engine.OpBlock, Key: longKey(-number, 100), TTLNs: 1e9}
		return decideOne(table, step{at, op}).Status
	}
	for n := range blocks {
		require.Equal(t, engine.OK, block(n))
	}
	for n := range 20_000 { // all of them become idle later than the blocks
		op := engine.Op{Key: longKey(n, 10+n%500), Limit: windowOf(engine.FixedWindow, boundHourNs, 10), Cost: 1}
		require.Equal(t, engine.OK, decideOne(table, step{at, op}).Status)
	}
	for n := range blocks {
		info, found := table.Inspect(at, longKey(-n, 100))
		require.True(t, found && info.Blocked)
	}
	refused := false
	for n := blocks; n < 20_000 && !refused; n++ {
		refused = block(n) == engine.OutOfMemory
	}
	require.True(t, refused)
	require.LessOrEqual(t, table.MemoryBytes(), int64(bound+bound/100))
}

// TestCompactionMovesWhole checks that compaction keeps every remaining entry complete, for any order of requests for
// memory. A store must get every change.
func TestCompactionMovesWhole(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	const bound, kept = 2 << 20, 200
	table := engine.NewTable(engine.Options{MaxMemoryBytes: bound, Shards: 1, TrackChanges: true})
	nowNs, day := int64(1e18), 24*boundHourNs
	log, leases := windowOf(engine.SlidingLog, day, 1000), windowOf(engine.Concurrency, 0, 1000)
	decide := func(op engine.Op) engine.Decision { return decideOne(table, step{engine.Stamp{NowNs: nowNs}, op}) }
	for round := range 20 {
		for n := range kept {
			nowNs += 1e3
			op := engine.Op{Key: longKey(n, 20+n), Limit: log, Cost: 1}
			if n%2 == 0 {
				op.Limit, op.Text, op.TTLNs = leases, fmt.Append(nil, "holder", round), day
			}
			require.EqualValues(t, 1, decide(op).Allowed)
		}
		for n := range 4_000 {
			op := engine.Op{Key: longKey(1000+n, 30+(n*37+round*101)%480), Limit: bucketOf(1, 1e9, 10), Cost: 1}
			require.Equal(t, engine.OK, decide(op).Status)
		}
	}
	for n := range kept {
		op := engine.Op{Key: longKey(n, 20+n), Limit: log, Dry: true}
		if n%2 == 0 {
			op.Limit = leases
		}
		require.EqualValues(t, 980, decide(op).Remaining, "key %d", n)
	}
	stored := map[string]bool{}
	require.NoError(t, table.Drain(1000, func(list []engine.Change) error {
		for _, c := range list {
			stored[string(c.Key[1:])] = c.Value != nil
		}
		return nil
	}))
	for n := range kept {
		require.True(t, stored[string(longKey(n, 20+n))], "key %d", n)
	}
}

// TestEvictionTakesLessFromSparseParts checks that evictions come from the whole index, but fewer from sparse segments.
// Otherwise a sparse segment would soon have only keys with much usage, and evictions would drop these keys.
func TestEvictionTakesLessFromSparseParts(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	const count = 60
	table, nowNs := engine.NewTable(engine.Options{MaxMemoryBytes: 1 << 20, Shards: 1}), int64(1e18)
	worst := newOffenders(count)
	require.Equal(t, count, worst.ask(table, nowNs, worst.limit.Max))
	for n := range 400_000 {
		nowNs += 1e3
		op := engine.Op{Key: longKey(n, 400), Limit: bucketOf(1, 60e9, 10), Cost: 1}
		if n < 20_000 {
			op.Key = longKey(n, 20) // many keys, so that the index has many segments
		}
		require.Equal(t, engine.OK, decideOne(table, step{engine.Stamp{NowNs: nowNs}, op}).Status)
	}
	require.Zero(t, worst.ask(table, nowNs, 1))
}
