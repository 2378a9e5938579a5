package engine

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFewerShardsForLittleMemory checks that a small memory bound reduces the number of shards, because each shard
// needs some pages for every slot length.
func TestFewerShardsForLittleMemory(t *testing.T) {
	for _, c := range []struct {
		o      Options
		shards int
	}{
		{Options{Shards: 64}, 64},
		{Options{Shards: 64, MaxMemoryBytes: 64 << 20}, 64},
		{Options{Shards: 64, MaxMemoryBytes: 64<<20 - 1}, 32},
		{Options{Shards: 64, MaxMemoryBytes: 1}, 1},
		{Options{Shards: 64, MaxMemoryBytes: 64 << 20, WhenFull: Replica}, 16},
		{Options{Shards: 64, MaxMemoryBytes: 256 << 20, WhenFull: Replica}, 64},
	} {
		require.Equal(t, c.shards, len(NewTable(c.o).shards), "%+v", c.o)
	}
}

// TestClearKeepsTheTotals checks that Clear removes the limiters and keeps the totals.
func TestClearKeepsTheTotals(t *testing.T) {
	table, at := NewTable(Options{Shards: 2}), Stamp{NowNs: 1e18}
	limit := Limit{Algorithm: FixedWindow, Mode: Forever, Max: 1}
	for range 3 {
		table.Decide(at, []Op{{Key: []byte("k"), Limit: limit, Cost: 1}}, make([]Decision, 1))
	}
	table.Clear()
	st := table.Stats(at)
	require.Zero(t, st.Keys)
	require.EqualValues(t, 1, st.Admitted[FixedWindow])
	require.EqualValues(t, 2, st.Denied[FixedWindow])
}
