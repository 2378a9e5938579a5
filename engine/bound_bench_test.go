package engine_test

import (
	"fmt"
	"testing"

	"github.com/weir-project/weir/engine"
)

// BenchmarkBound measures a decision on a new key in a full table, by the lengths of keys.
func BenchmarkBound(b *testing.B) {
	for _, lengths := range [][2]int{{100, 100}, {10, 249}, {10, engine.MaxKeyLen}} {
		b.Run(fmt.Sprint(lengths[0], " to ", lengths[1]), func(b *testing.B) {
			table := engine.NewTable(engine.Options{MaxMemoryBytes: 32 << 20})
			key := make([]byte, engine.MaxKeyLen)
			ops, out := make([]engine.Op, 1), make([]engine.Decision, 1)
			ops[0] = engine.Op{Limit: bucketOf(1, boundHourNs, 10), Cost: 1}
			at, n := engine.Stamp{NowNs: 1e18}, 0
			decide := func() {
				copy(key, fmt.Appendf(nil, "%08x", n))
				ops[0].Key = key[:lengths[0]+int(uint64(n)*0x9e3779b97f4a7c15>>33)%(lengths[1]-lengths[0]+1)]
				at.NowNs += 1e3
				table.Decide(at, ops, out)
				n++
			}
			for table.MemoryBytes() < 28<<20 {
				decide()
			}
			refused := 0
			for b.Loop() {
				if decide(); out[0].Status == engine.OutOfMemory {
					refused++
				}
			}
			b.ReportMetric(float64(refused)/float64(b.N), "refused/op")
		})
	}
}
