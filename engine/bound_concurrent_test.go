package engine_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
)

// TestBoundForManyCallers checks that the bound holds while concurrent callers reclaim memory from each other's
// shards.
func TestBoundForManyCallers(t *testing.T) {
	const bound, callers = 2 << 20, 4
	for name, full := range map[string]engine.FullPolicy{"least harm": engine.LeastHarm, "replica": engine.Replica} {
		t.Run(name, func(t *testing.T) {
			o := engine.Options{MaxMemoryBytes: bound, WhenFull: full, Shards: 2, TrackChanges: true}
			table := engine.NewTable(o)
			var wait sync.WaitGroup
			for caller := range uint64(callers) {
				wait.Go(func() {
					b := newBoundTraffic(caller, bound, 1<<20)
					ops, out := make([]engine.Op, boundBatch), make([]engine.Decision, boundBatch)
					for n := range 50 {
						b.batch(ops)
						at := engine.Stamp{NowNs: b.nowNs}
						if table.Decide(at, ops, out); n%8 == 0 {
							table.DecideAtomic(at, ops[:16], out)
						}
						if caller == 0 {
							_ = table.Drain(1000, func([]engine.Change) error { return nil })
							table.Victims(at, table.CompactBytes()-bound/8*7, 100, func(key, _ []byte) {
								op := engine.Op{Code: engine.OpForget, Key: key}
								table.Decide(at, []engine.Op{op}, out)
							})
						}
					}
				})
			}
			wait.Wait()
			require.Greater(t, table.MemoryBytes(), int64(bound/2))
			if full == engine.LeastHarm {
				require.LessOrEqual(t, table.MemoryBytes(), int64(bound+bound/100))
			}
		})
	}
}
