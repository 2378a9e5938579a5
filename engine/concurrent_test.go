package engine_test

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
)

const callers = 64

// runParallel runs work in 64 goroutines and returns when all are done.
func runParallel(work func(caller int)) {
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() { work(c) })
	}
	wg.Wait()
}

func keyOf(n int) []byte { return binary.BigEndian.AppendUint64([]byte("key:"), uint64(n)) }

// TestConcurrentOneKey checks that concurrent callers of one key are admitted exactly up to the limit, with every
// algorithm.
func TestConcurrentOneKey(t *testing.T) {
	const asks = 40_000 / callers / min(raceFactor, 4)
	for _, l := range allOfTen {
		most := int64(5_000)
		if l.Algorithm == engine.Concurrency {
			most = 300 // finding a lease is a linear search
		}
		l.Max = most
		if l.Algorithm == engine.LeakyBucket {
			l.Max--
		}
		table := engine.NewTable(engine.Options{})
		var admitted atomic.Int64
		runParallel(func(caller int) {
			out := make([]engine.Decision, 1)
			for i := range asks {
				op := engine.Op{Key: []byte("one"), Limit: l, Cost: 1, Text: keyOf(caller*asks + i)}
				table.Decide(engine.Stamp{NowNs: 1e18}, []engine.Op{op}, out)
				admitted.Add(out[0].Allowed)
			}
		})
		require.EqualValues(t, most, admitted.Load(), "%v %d", l.Algorithm, l.Mode)
	}
}

// TestConcurrentManyKeys checks that each of 100,000 keys admits exactly its limit. All callers ask in batches and in
// different orders.
func TestConcurrentManyKeys(t *testing.T) {
	const keys, most, batch = 100_000 / raceFactor, 10, 100
	table := engine.NewTable(engine.Options{})
	admitted := make([]atomic.Int64, keys)
	limits := []engine.Limit{bucketOf(1, 1e9, most), windowOf(engine.SlidingLog, 60e9, most),
		windowOf(engine.FixedWindow, 60e9, most)}
	runParallel(func(caller int) {
		ops, out := make([]engine.Op, batch), make([]engine.Decision, batch)
		// Each caller asks for half of the keys, so each key is asked 32 times.
		for from := 0; from < keys/2; from += batch {
			for i := range ops {
				n := (caller*keys/callers + (from+i)*7) % keys
				ops[i] = engine.Op{Key: keyOf(n), Limit: limits[n%len(limits)], Cost: 1}
			}
			if caller%2 == 0 {
				table.Decide(engine.Stamp{NowNs: 1e18}, ops, out)
			} else {
				table.DecideAtomic(engine.Stamp{NowNs: 1e18}, ops, out)
			}
			for i := range ops {
				admitted[(caller*keys/callers+(from+i)*7)%keys].Add(out[i].Allowed)
			}
		}
	})
	for n := range admitted {
		require.EqualValues(t, most, admitted[n].Load(), "key %d", n)
	}
	require.EqualValues(t, keys, table.Len(engine.Stamp{NowNs: 1e18}))
}

// TestConcurrentTimeMovesOn checks that admissions stay within burst + rate x t although the callers' stamps are
// unordered.
func TestConcurrentTimeMovesOn(t *testing.T) {
	const burst, asks = 50, 20_000 / raceFactor
	table := engine.NewTable(engine.Options{})
	var nowNs, admitted atomic.Int64
	nowNs.Store(1e18)
	runParallel(func(int) {
		out := make([]engine.Decision, 1)
		op := engine.Op{Key: []byte("one"), Limit: bucketOf(1, 1_000, burst), Cost: 1}
		for range asks {
			table.Decide(engine.Stamp{NowNs: nowNs.Add(17)}, []engine.Op{op}, out)
			admitted.Add(out[0].Allowed)
		}
	})
	due := burst + (nowNs.Load()-1e18)/1_000
	require.LessOrEqual(t, admitted.Load(), due)
	require.Greater(t, admitted.Load(), due*9/10, "not far fewer units may be admitted either")
}

// TestConcurrentAtomicBatches checks atomic batches that take one unit of each of two keys, or look at both. No look
// may see that one key has fewer units left than the other.
func TestConcurrentAtomicBatches(t *testing.T) {
	const most, rounds = 1_000_000, 5_000 / raceFactor
	table := engine.NewTable(engine.Options{})
	limit := bucketOf(1, engine.MaxWindowNs, most)
	var torn atomic.Int64
	runParallel(func(caller int) {
		out := make([]engine.Decision, 2)
		ops := []engine.Op{{Key: keyOf(1), Limit: limit}, {Key: keyOf(2), Limit: limit}}
		if caller%4 == 1 {
			ops[0], ops[1] = ops[1], ops[0]
		}
		if caller%2 == 0 {
			ops[0].Cost, ops[1].Cost = 1, 1
		}
		for range rounds {
			table.DecideAtomic(engine.Stamp{NowNs: 1e18}, ops, out)
			if out[0].Remaining != out[1].Remaining {
				torn.Add(1)
			}
		}
	})
	require.Zero(t, torn.Load())
}

// TestConcurrentEverything runs every method at once, for the race detector.
func TestConcurrentEverything(t *testing.T) {
	const rounds = 300 / min(raceFactor, 3)
	table := engine.NewTable(engine.Options{TrackChanges: true, MaxMemoryBytes: 4 << 20})
	var draining sync.Mutex
	runParallel(func(caller int) {
		g := newGenerator(seeded(uint64(caller)), engine.NoAlgorithm, 5_000)
		g.at = engine.Stamp{NowNs: 1e18}
		out := make([]engine.Decision, 64)
		ops := make([]engine.Op, 64)
		for i := range rounds {
			for j := range ops {
				ops[j] = g.next().op
			}
			table.Decide(g.at, ops, out)
			switch (caller + i) % 8 {
			case 0:
				table.DecideAtomic(g.at, ops, out)
			case 1:
				table.Scan(g.at, 0, 100, func([]byte, engine.Algorithm) {})
			case 2:
				table.Inspect(g.at, ops[0].Key)
				table.RandomKey(g.at, uint64(i), 0)
			case 3:
				table.Collect(g.at, 10)
			case 4:
				draining.Lock()
				_ = table.Drain(100, func([]engine.Change) error { return nil })
				draining.Unlock()
			case 5:
				table.Stats(g.at)
				table.Len(g.at)
			}
		}
	})
	table.Clear()
	require.Zero(t, table.Len(engine.Stamp{NowNs: 1e18}))
}
