package engine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/race"
)

// TestReclaimingBesideManyIDs checks the work of making room for values in a table that is full of the IDs of one key.
// All IDs are in one shard, so reclaiming takes its memory from there. Most entries of the shard are small, and its
// large entries are of more worth. The bound is on the entries that walks over the index read, for each value.
func TestReclaimingBesideManyIDs(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	const ids, values, perValue = 40_000, 12_000, 150
	table := NewTable(Options{MaxMemoryBytes: 16 << 20})
	at, out := Stamp{NowNs: 1_800_000_000e9}, make([]Decision, 1)
	do := func(op Op) {
		at.NowNs += 5000
		table.Decide(at, []Op{op}, out)
		require.Equal(t, OK, out[0].Status)
	}
	for i := range ids {
		do(Op{Code: OpTake, Key: []byte("key"), ID: fmt.Append(nil, i), Cost: 1,
			Limit: Limit{Algorithm: FixedWindow, WindowNs: 3600e9, Max: 2 * ids}})
	}
	set := &Script{ID: TextSet}
	set.Values[0] = []byte(strings.Repeat("v", 4000))
	for i := range values {
		do(Op{Code: OpScript, Key: fmt.Append(nil, "value:", i), Cost: 1, Script: set})
	}
	visited := int64(0)
	for i := range table.shards {
		visited += table.shards[i].VisitedByShedding()
	}
	t.Logf("walks read %d entries, %d for each value", visited, visited/values)
	require.Positive(t, visited)
	require.Less(t, visited/values, int64(perValue))
}
