package raftstore_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestALateImageRemovesNoEntry checks that an old image from the leader does not remove later entries which the
// follower has acknowledged. The leader sees a success and continues.
func TestALateImageRemovesNoEntry(t *testing.T) {
	c := newCluster(t, 3, nil)
	leader, at := c.leader()
	follower := c.nodes[(at+1)%3]
	c.take(leader, "key", 100)
	require.NoError(t, leader.Snapshot())
	for range 20 {
		c.take(leader, "key", 100)
	}
	c.agree()
	before := follower.LogEntries()
	require.Greater(t, before, uint64(20))
	success, err := leader.SendNewestImage(c.opts[(at+1)%3].NodeID)
	require.NoError(t, err)
	require.True(t, success, "the leader must see success, or it would send the image again")
	require.GreaterOrEqual(t, follower.LogEntries(), before)
	require.EqualValues(t, 78, c.take(follower, "key", 100).Remaining)
	c.agree()
	require.Empty(t, c.fatal)
}
