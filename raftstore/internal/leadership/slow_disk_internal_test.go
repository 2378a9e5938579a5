package leadership

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/raftstore/internal/timers"
)

func TestALeaderLeavesASlowDiskSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s slowDisk
		const slow = slowAppend * 2
		leavesIn := func(d, mine, theirs time.Duration) bool {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(timers.HousekeepEvery) {
				if s.leaves(mine, theirs) {
					return true
				}
			}
			return false
		}
		require.False(t, leavesIn(time.Hour, slow, 0), "the leader must stay while the other disks are unknown")
		require.False(t, leavesIn(time.Hour, slow, slow/slowerThan+1), "the leader must stay if all disks are slow")
		require.False(t, leavesIn(time.Hour, slowAppend-1, 1), "the leader must stay if its disk is fast enough")
		require.False(t, leavesIn(slowFor, slow, 1))
		require.False(t, leavesIn(slowFor/2, slow, slow), "the leader must stay while the other disks are slow too")
		require.False(t, leavesIn(slowFor, slow, 1))
		require.True(t, leavesIn(slowFor, slow, 1))
		require.False(t, leavesIn(handOverAgain-time.Second, slow, 1),
			"the leader must stay for a while after a transfer")
		require.True(t, leavesIn(2*time.Second, slow, 1))
	})
}
