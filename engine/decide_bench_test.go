package engine_test

import (
	"fmt"
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

func benchDecide(b *testing.B, limit engine.Limit, keys int) {
	const batch = 128
	table := engine.NewTable(engine.Options{TrackChanges: true})
	ops, out := make([]engine.Op, batch), make([]engine.Decision, batch)
	names := make([]byte, 0, keys*15)
	for i := range keys {
		names = fmt.Appendf(names, "key:%011d", i)
	}
	pick := uint64(1)
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; n += batch {
		for i := range ops {
			pick = pick*6364136223846793005 + 1442695040888963407
			k := (pick >> 33) % uint64(keys) * 15
			ops[i] = engine.Op{Key: names[k : k+15], Limit: limit, Cost: 1}
		}
		table.Decide(engine.Stamp{NowNs: 1e18 + int64(n)*1000}, ops, out)
	}
}
