package raftstore

import (
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	"github.com/stretchr/testify/require"
)

// slowStore takes as long as it is told to.
type slowStore struct {
	*raft.InmemStore
	takes time.Duration
}

func (s *slowStore) StoreLogs(ls []*raft.Log) error {
	time.Sleep(s.takes) // in fake time
	return s.InmemStore.StoreLogs(ls)
}

func TestAHungWriteIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guard(&slowStore{raft.NewInmemStore(), time.Minute}, func(err error) { t.Error(err) })
		go g.StoreLog(&raft.Log{Index: 1})
		time.Sleep(hungAfter - time.Second)
		_, yes := g.hung(hungAfter)
		require.False(t, yes)
		time.Sleep(2 * time.Second)
		what, yes := g.hung(hungAfter)
		require.True(t, yes)
		require.Equal(t, "store entries", what)
		time.Sleep(time.Minute)
		_, yes = g.hung(hungAfter)
		require.False(t, yes, "it has come to an end")
	})
}

func TestAStuckHandoverIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h handoverWatch
		h.saw(raft.ErrLeadershipTransferInProgress)
		time.Sleep(time.Minute)
		h.saw(nil)
		require.False(t, h.stuck(time.Second), "an entry passed since")
		h.saw(raft.ErrLeadershipTransferInProgress)
		time.Sleep(time.Second)
		h.saw(raft.ErrLeadershipTransferInProgress)
		require.False(t, h.stuck(time.Second))
		time.Sleep(time.Second)
		require.True(t, h.stuck(time.Second))
	})
}

func TestAStalledMemberIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stalled{limit: 10 * time.Second}
		members := func(index uint64, up bool) []Member {
			return []Member{{ID: "a", AppliedIndex: 1, Up: true}, {ID: "b", AppliedIndex: index, Up: up}}
		}
		look := func(commit, index uint64, up bool) bool {
			_, yes := s.check("a", commit, members(index, up))
			return yes
		}
		require.False(t, look(1000, 5, true))
		time.Sleep(9 * time.Second)
		require.False(t, look(2000, 6, true), "it moves")
		time.Sleep(11 * time.Second)
		require.False(t, look(3000, 6, false), "it is down")
		time.Sleep(11 * time.Second)
		require.False(t, look(6+caughtUp, 6, true), "it lacks nothing")
		time.Sleep(11 * time.Second)
		require.True(t, look(9000, 6, true))
	})
}

func TestFatalErrorsSayWhetherToRestart(t *testing.T) {
	n := &Node{log: slog.New(slog.DiscardHandler)}
	require.NotNil(t, n.stopper(nil))
	require.Contains(t, restartAdvice(ErrDiverged), "no:")
	require.Contains(t, restartAdvice(ErrLogFailed), "yes")
	require.Contains(t, restartAdvice(fmt.Errorf("%w: %w", ErrLogFailed, wal.ErrCorrupt)), "no:", "it would only stop again")
}
