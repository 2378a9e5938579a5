package queue

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore/wire"
)

// twoGroups returns the queues of two groups of a host.
func twoGroups() (one, two *Queue) {
	w := NewHostWindow()
	return New(0, w), New(0, w)
}

// TestGroupsShareRounds checks that the batches of all groups wait while a batch of any group is in flight, and then
// go together.
func TestGroupsShareRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := twoGroups()
		queued(t, one, "a", 1, false)
		require.True(t, mayGo(one), "a caller that is alone waits for nobody")
		first := one.Next()
		queued(t, two, "b", 1, false)
		queued(t, one, "c", 1, false)
		require.False(t, mayGo(one))
		require.False(t, mayGo(two), "a batch of the other group is in flight")
		one.Complete(first, nil)
		require.True(t, mayGo(one))
		require.True(t, mayGo(two))
	})
}

// TestAGroupThatDoesNotAnswer checks that it delays the other groups for holdFor, and only once.
func TestAGroupThatDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := twoGroups()
		queued(t, one, "a", 1, false)
		stuck := one.Next()
		queued(t, two, "b", 1, false)
		time.Sleep(holdFor - 1)
		synctest.Wait()
		require.False(t, mayGo(two))
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.True(t, mayGo(two))
		two.Complete(two.Next(), nil)
		queued(t, two, "c", 1, false)
		require.True(t, mayGo(two), "the batch that is stuck counts no longer")
		b := two.Next()
		one.Complete(stuck, nil)
		queued(t, one, "d", 1, false)
		require.False(t, mayGo(one), "the late answer ends no later round")
		two.Complete(b, limiter.ErrTryAgain)
		synctest.Wait()
		time.Sleep(coalesceFor)
		synctest.Wait()
		require.True(t, mayGo(one))
	})
}

// TestAFullEntryWaitsForNoRound checks that a batch goes at once when it fills an entry.
func TestAFullEntryWaitsForNoRound(t *testing.T) {
	one, two := twoGroups()
	queued(t, one, "a", 1, false)
	one.Next()
	queued(t, two, "b", MaxEntryOps-1, false)
	require.False(t, mayGo(two))
	queued(t, two, "c", 1, false)
	require.True(t, mayGo(two))
	require.Len(t, two.Batches, 1)
}

// TestARoundWaitsForItsCallers checks that the next round waits for three quarters of the callers that were answered,
// for half the duration of the last round.
func TestARoundWaitsForItsCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := twoGroups()
		const round = 4 * time.Millisecond
		begin := func() *Batch {
			queued(t, one, "a", 8, false)
			b := one.Next()
			time.Sleep(round)
			return b
		}
		one.Complete(begin(), nil)
		queued(t, two, "b", 5, false)
		require.False(t, mayGo(two), "8 callers were answered, and 5 have returned")
		queued(t, one, "c", 1, false)
		require.True(t, mayGo(one))
		require.True(t, mayGo(two))
		b, c := one.Next(), two.Next()
		one.Complete(b, nil)
		two.Complete(c, nil)
		time.Sleep(coalesceFor)

		one.Complete(begin(), nil)
		queued(t, two, "d", 1, false)
		time.Sleep(round/2 - 1)
		synctest.Wait()
		require.False(t, mayGo(two))
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.True(t, mayGo(two), "the other callers have not returned in time")
	})
}

// TestOtherNodesCallersAreNotExpected checks that a round does not wait for callers of other nodes, which wait there.
func TestOtherNodesCallersAreNotExpected(t *testing.T) {
	one, two := twoGroups()
	queued(t, one, "a", 8, true)
	b := one.Next()
	queued(t, one, "b", 1, false)
	one.Coalesce(b)
	require.Equal(t, 1, b.ownOps())
	one.Complete(b, limiter.ErrTryAgain)
	queued(t, two, "c", 3, false)
	require.True(t, mayGo(two))
	b = two.Next()
	queued(t, two, "d", 8, true)
	two.Coalesce(b)
	require.Equal(t, 3, b.ownOps())
}

// TestSpecialBatchesWaitForNoRound checks that the ticks of a group do not wait for other groups.
func TestSpecialBatchesWaitForNoRound(t *testing.T) {
	one, two := twoGroups()
	queued(t, one, "a", 1, false)
	one.Next()
	_, err := two.Special(wire.Tick)
	require.NoError(t, err)
	require.True(t, mayGo(two))
}
