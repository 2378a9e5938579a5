package engine_test

import (
	"encoding/binary"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/weir-project/weir/engine"
)

// BenchmarkDrain measures one changed entry of a drain, in a table where most entries have changed and in one where
// few have.
func BenchmarkDrain(b *testing.B) {
	for _, keys := range []int{100_000, 4_000_000} {
		b.Run(strconv.Itoa(keys), func(b *testing.B) { benchDrain(b, keys) })
	}
}

func benchDrain(b *testing.B, keys int) {
	const batch, keyLen, changes = 128, 15, 200_000
	table := engine.NewTable(engine.Options{TrackChanges: true})
	limit := engine.Limit{Algorithm: engine.TokenBucket, Rate: engine.Rate{Units: 1, PerNs: 1e12}, Max: 1 << 40}
	ops, out, pipeline, nowNs := make([]engine.Op, batch), make([]engine.Decision, batch), make([]byte, batch*keyLen),
		int64(1e18)
	decide := func(n int, pick func(i int) int) {
		for from := 0; from < n; from += batch {
			for i := range ops {
				key := pipeline[i*keyLen:][:keyLen]
				binary.BigEndian.PutUint64(key[4:], uint64(pick(from+i)))
				ops[i] = engine.Op{Key: key, Limit: limit, Cost: 1}
			}
			nowNs += batch * 1000
			table.Decide(engine.Stamp{NowNs: nowNs}, ops, out)
		}
	}
	drain := func() (drained int) {
		_ = table.Drain(1024, func(chunk []engine.Change) error { drained += len(chunk); return nil })
		return drained
	}
	decide(keys, func(i int) int { return i })
	drain()
	b.ResetTimer()
	drained := 0
	for drained < b.N {
		b.StopTimer()
		decide(min(changes, b.N), func(int) int { return rand.IntN(keys) })
		b.StartTimer()
		drained += drain()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(drained), "ns/change")
}
