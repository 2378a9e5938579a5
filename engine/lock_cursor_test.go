package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine/internal/arith"
)

// TestLockCursorReleasesBusyShards checks that a lock cursor releases its lock now and then on one shard, and at every
// change between two. A finished cursor holds no lock.
func TestLockCursorReleasesBusyShards(t *testing.T) {
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
	require.True(t, one.mu.TryLock(), "the lock of the other shard must be free")
	one.mu.Unlock()
	require.True(t, held.enter(one))
	held.leave()
	held.leave()
	require.True(t, one.mu.TryLock() && two.mu.TryLock())
}
