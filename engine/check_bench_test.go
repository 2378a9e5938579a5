package engine_test

import (
	"fmt"
	"testing"

	"github.com/weir-project/weir/engine"
)

// BenchmarkCheck measures checks of policies with one and four limits, and a plain decision, in batches of 128 over
// random keys.
func BenchmarkCheck(b *testing.B) {
	bucket := engine.PolicyLimit{Limit: engine.Limit{Algorithm: engine.TokenBucket,
		Rate: engine.Rate{Units: 1, PerNs: 1e7}, Max: 100}}
	four := []engine.PolicyLimit{
		bucket,
		{Limit: engine.Limit{Algorithm: engine.TokenBucket, Rate: engine.Rate{Units: 100, PerNs: 60e9}, Max: 100}},
		{Limit: engine.Limit{Algorithm: engine.FixedWindow, WindowNs: 3600e9, Max: 1e9}},
		{Limit: engine.Limit{Algorithm: engine.SlidingCounter, WindowNs: 86400e9, Max: 1e9}},
	}
	one, fourName := []byte("one"), []byte("four")
	for _, keys := range []int{100, 100_000} {
		b.Run(fmt.Sprintf("plain/%d", keys), func(b *testing.B) {
			benchCheck(b, keys, func(key []byte) engine.Op { return engine.Op{Key: key, Limit: bucket.Limit, Cost: 1} })
		})
		b.Run(fmt.Sprintf("one/%d", keys), func(b *testing.B) {
			benchCheck(b, keys, func(key []byte) engine.Op {
				return engine.Op{Code: engine.OpCheck, Key: key, Text: one, Cost: 1}
			}, setPolicy("one", engine.Policy{Limits: four[:1]}))
		})
		b.Run(fmt.Sprintf("four/%d", keys), func(b *testing.B) {
			benchCheck(b, keys, func(key []byte) engine.Op {
				return engine.Op{Code: engine.OpCheck, Key: key, Text: fourName, Cost: 1}
			}, setPolicy("four", engine.Policy{Limits: four}))
		})
	}
}

func benchCheck(b *testing.B, keys int, makeOp func(key []byte) engine.Op, setup ...engine.Op) {
	const batch = 128
	table := engine.NewTable(engine.Options{TrackChanges: true})
	for _, op := range setup {
		decideAt(table, engine.Stamp{NowNs: 1e18}, op)
	}
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
			ops[i] = makeOp(names[k : k+15])
		}
		table.Decide(engine.Stamp{NowNs: 1e18 + int64(n)*1000}, ops, out)
	}
}
