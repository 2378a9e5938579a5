package engine_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
)

// TestCompactOnDemand checks that a replica frees the pages of entries that it forgot when it is asked to, and only as
// many as it is asked for. It keeps them while it is below its size.
func TestCompactOnDemand(t *testing.T) {
	const keys = 40_000
	o := engine.Options{MaxMemoryBytes: 1 << 30, WhenFull: engine.Replica, Shards: 2}
	table := fill(keys, o)
	var forgets []engine.Op
	for i := range keys {
		if i%10 > 0 {
			forgets = append(forgets, engine.Op{Code: engine.OpForget, Key: fmt.Appendf(nil, "user:%010d", i), Cost: 1})
		}
	}
	table.Decide(engine.Stamp{NowNs: 1e18}, forgets, make([]engine.Decision, len(forgets)))
	full := table.MemoryBytes()
	require.Less(t, table.CompactBytes(), full/2)

	table.CompactAbove(math.MaxInt64, math.MaxInt64)
	table.Compact(1000)
	require.Equal(t, full, table.MemoryBytes(), "below its size a table keeps its pages")
	table.CompactAbove(full*3/4, math.MaxInt64)
	table.Compact(1)
	some := table.MemoryBytes()
	require.Greater(t, some, full*3/4)
	table.Compact(1000)
	require.LessOrEqual(t, table.MemoryBytes(), full*3/4)
	require.Greater(t, table.MemoryBytes(), full/2, "no more than it is asked for")

	table.CompactAbove(full/2, full/2)
	ops := []engine.Op{{Key: []byte("user:0000000000"), Limit: bucketOf(1, 1e9, 100), Cost: 1}}
	table.Decide(engine.Stamp{NowNs: 1e18}, ops, make([]engine.Decision, 1))
	require.LessOrEqual(t, table.MemoryBytes(), full/2, "above the urgent size an operation frees all that it takes")
	require.EqualValues(t, keys/10, table.Len(engine.Stamp{NowNs: 1e18}))
}
