package engine

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFewerShardsForLittleMemory: a shard has some pages for slots of every length.
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
