package leadership

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/limiter"
)

func TestAStuckHandoverIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h handoverWatch
		h.Observe(raft.ErrLeadershipTransferInProgress, 3)
		time.Sleep(time.Minute)
		h.Observe(nil, 3)
		require.False(t, h.Stuck(time.Second, 3), "an entry that passed must end the suspicion")
		h.Observe(raft.ErrLeadershipTransferInProgress, 3)
		time.Sleep(time.Second)
		h.Observe(raft.ErrLeadershipTransferInProgress, 3)
		require.False(t, h.Stuck(time.Second, 3))
		time.Sleep(time.Second)
		require.True(t, h.Stuck(time.Second, 3))
		require.False(t, h.Stuck(time.Second, 5), "another node has led since")
		h.Observe(raft.ErrLeadershipTransferInProgress, 5)
		require.False(t, h.Stuck(time.Second, 5))
		time.Sleep(2 * time.Second)
		require.True(t, h.Stuck(time.Second, 5))
	})
}

func TestAStalledMemberIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stallCheck{limit: 10 * time.Second}
		members := func(index uint64, up bool) []limiter.Member {
			return []limiter.Member{{ID: "a", AppliedIndex: 1, Up: true}, {ID: "b", AppliedIndex: index, Up: up}}
		}
		look := func(commit, index uint64, up bool) bool {
			_, yes := s.check("a", commit, members(index, up))
			return yes
		}
		require.False(t, look(1000, 5, true))
		time.Sleep(9 * time.Second)
		require.False(t, look(2000, 6, true), "a member that makes progress must not count as stalled")
		time.Sleep(11 * time.Second)
		require.False(t, look(3000, 6, false), "a member that is down must not count as stalled")
		time.Sleep(11 * time.Second)
		require.False(t, look(6+CaughtUp, 6, true), "a member that has caught up must not count as stalled")
		time.Sleep(11 * time.Second)
		require.True(t, look(9000, 6, true))
	})
}
