package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine/internal/arith"
)

// TestTurnLetsOthersIn: a batch on one shard gives its lock up now and then, one on two
// shards at every change, and a turn that is over holds none.
func TestTurnLetsOthersIn(t *testing.T) {
	table := NewTable(Options{Shards: 2})
	one, two := &table.shards[0], &table.shards[1]
	var held lockCursor
	locked := 0
	for range 10 * opsPerLock {
		locked += int(arith.OneIf(held.enter(one)))
		require.False(t, one.mu.TryLock())
	}
	require.Equal(t, 10, locked)
	require.True(t, held.enter(two))
	require.True(t, one.mu.TryLock(), "the other is free")
	one.mu.Unlock()
	require.True(t, held.enter(one))
	held.leave()
	held.leave()
	require.True(t, one.mu.TryLock() && two.mu.TryLock())
}
