package engine_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/weir-project/weir/engine"
)

// BenchmarkDecide measures one decision, in batches of 128 over random keys.
func BenchmarkDecide(b *testing.B) {
	limits := map[string]engine.Limit{
		"tokenbucket":    {Algorithm: engine.TokenBucket, Rate: engine.Rate{Units: 1, PerNs: 1e7}, Max: 100},
		"fixed":          {Algorithm: engine.FixedWindow, WindowNs: 1e9, Max: 100},
		"sliding":        {Algorithm: engine.SlidingLog, WindowNs: 1e9, Max: 100},
		"slidingcounter": {Algorithm: engine.SlidingCounter, WindowNs: 1e9, Max: 100},
	}
	for name, limit := range limits {
		for _, keys := range []int{1, 100_000, 1_000_000} {
			b.Run(fmt.Sprintf("%s/%d", name, keys), func(b *testing.B) { benchDecide(b, limit, keys) })
		}
	}
}

// benchDecide creates all keys before it measures. The keys of a batch are adjacent, as in a client's pipeline.
func benchDecide(b *testing.B, limit engine.Limit, keys int) {
	const batch, keyLen = 128, 15
	table := engine.NewTable(engine.Options{TrackChanges: true})
	ops, out := make([]engine.Op, batch), make([]engine.Decision, batch)
	pipeline, nowNs := make([]byte, batch*keyLen), int64(1e18)
	decide := func(pick func(i int) uint64) {
		for i := range ops {
			key := pipeline[i*keyLen:][:keyLen]
			copy(key, "key:00000000000")
			for k, at := pick(i), keyLen-1; k > 0; k, at = k/10, at-1 {
				key[at] = byte('0' + k%10)
			}
			ops[i] = engine.Op{Key: key, Limit: limit, Cost: 1}
		}
		nowNs += batch * 1000
		table.Decide(engine.Stamp{NowNs: nowNs}, ops, out)
	}
	for n := 0; n < keys; n += batch {
		decide(func(i int) uint64 { return uint64(n + i) })
	}
	random := rand.New(rand.NewPCG(1, 2))
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; n += batch {
		decide(func(int) uint64 { return random.Uint64N(uint64(keys)) })
	}
}
