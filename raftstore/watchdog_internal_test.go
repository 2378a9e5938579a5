package raftstore

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/internal/raftlog"
	"github.com/weir-project/weir/raftstore/internal/timers"
	"github.com/weir-project/weir/raftstore/internal/transport"
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
		g := raftlog.Guard(&slowStore{raft.NewInmemStore(), time.Minute}, func(err error) { t.Error(err) })
		awake := func(d time.Duration) {
			for ; d > 0; d -= timers.HousekeepEvery {
				time.Sleep(timers.HousekeepEvery)
				g.Awake.Tick()
			}
		}
		g.Awake.Tick()
		go g.StoreLog(&raft.Log{Index: 1})
		awake(hungAfter - time.Second)
		_, yes := g.Hung(hungAfter)
		require.False(t, yes)
		awake(2 * time.Second)
		what, yes := g.Hung(hungAfter)
		require.True(t, yes)
		require.Equal(t, "store entries", what)
		awake(time.Minute)
		_, yes = g.Hung(hungAfter)
		require.False(t, yes, "it has come to an end")
	})
}

// While a process is paused its disk is not waited for.
func TestAPauseIsNoHungWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := raftlog.Guard(&slowStore{raft.NewInmemStore(), time.Hour}, func(err error) { t.Error(err) })
		g.Awake.Tick()
		go g.StoreLog(&raft.Log{Index: 1})
		synctest.Wait()
		for range 3 {
			time.Sleep(10 * hungAfter) // no tick comes while the process is paused
			g.Awake.Tick()
			_, yes := g.Hung(hungAfter)
			require.False(t, yes)
		}
		for range hungAfter / timers.HousekeepEvery {
			time.Sleep(timers.HousekeepEvery)
			g.Awake.Tick()
		}
		_, yes := g.Hung(hungAfter)
		require.True(t, yes)
		time.Sleep(time.Hour) // the write ends
	})
}

// A leader withholds heartbeats while an append is stuck, and no longer.
func TestTheGateOpensWhenTheDiskAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, takes = 100 * time.Millisecond, 3 * time.Second
		g := &transport.Gate{Logs: raftlog.Guard(&slowStore{raft.NewInmemStore(), takes}, nil), Limit: limit, Log: slog.New(slog.DiscardHandler)}
		start := time.Now()
		g.Wait()
		go g.Logs.StoreLog(&raft.Log{Index: 1})
		time.Sleep(limit)
		g.Wait()
		require.Equal(t, limit, time.Since(start), "it waited for a disk that is in time")
		time.Sleep(time.Millisecond)
		g.Wait()
		require.GreaterOrEqual(t, time.Since(start), takes, "it did not wait")
		require.Less(t, time.Since(start), takes+2*transport.GatePause)
		g.Wait()
		synctest.Wait()
	})
}

func TestTheGateOpensWhenTheNodeCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		g := &transport.Gate{Logs: raftlog.Guard(&slowStore{raft.NewInmemStore(), time.Hour}, nil), Stop: stop, Log: slog.New(slog.DiscardHandler)}
		go g.Logs.StoreLog(&raft.Log{Index: 1})
		time.Sleep(time.Second)
		go func() {
			time.Sleep(time.Second)
			close(stop)
		}()
		start := time.Now()
		g.Wait()
		require.Less(t, time.Since(start), 2*time.Second)
		time.Sleep(time.Hour) // the write ends
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
	h := &host{log: slog.New(slog.DiscardHandler)}
	require.NotNil(t, h.stopper(nil))
	corrupt := fmt.Errorf("%w: %w", failure.ErrLogFailed, wal.ErrCorrupt)
	require.Contains(t, failure.RestartAdvice(failure.ErrDiverged, false), "no:")
	require.Contains(t, failure.RestartAdvice(failure.ErrLogFailed, false), "yes")
	require.Contains(t, failure.RestartAdvice(corrupt, false), "no:", "it would only stop again")
	for err, want := range map[error]string{
		ErrRemoved:   "no: to have it join again",
		ErrLostState: "no: remove the node of this id",
		ErrSpentID:   "yes: it joins as another node",
		ErrDisputed:  "yes, when the other nodes are up again",
		ErrNewer:     "no: run the newer version",
		ErrStuck:     "yes, once the cause is gone",
	} {
		require.Contains(t, failure.RestartAdvice(fmt.Errorf("node: %w", err), false), want)
	}
}

// No advice has anybody delete what may be the only copy of the state.
func TestNoAdviceDeletesAnything(t *testing.T) {
	for _, alone := range []bool{true, false} {
		for _, err := range []error{failure.ErrDiverged, failure.ErrRemoved, failure.ErrLostState, failure.ErrSpentID, failure.ErrNewer, failure.ErrLogFailed, wal.ErrCorrupt, failure.ErrStuck, failure.ErrDisputed, persistence.ErrDamagedLive} {
			advice := failure.RestartAdvice(err, alone)
			for _, word := range []string{"empty", "delete", "erase", "wipe"} {
				require.NotContains(t, advice, word, "%v", err)
			}
		}
	}
	require.True(t, strings.HasPrefix(failure.RestartAdvice(persistence.ErrDamagedLive, false), "no: "), "what is damaged does not mend by itself")
	alone := failure.RestartAdvice(wal.ErrCorrupt, true)
	require.Contains(t, alone, "backup")
	require.Contains(t, alone, "keep this data directory")
	require.NotContains(t, alone, "remove")
	others := failure.RestartAdvice(wal.ErrCorrupt, false)
	require.Less(t, strings.Index(others, "majority serves"), strings.Index(others, "remove this node"), "what to see first comes first")

	h := &host{options: Options{Expect: 1}, peers: &peers{}}
	require.True(t, h.alone())
	h.peers.members.Store(&[]limiter.Member{{ID: "a"}, {ID: "b"}})
	require.False(t, h.alone(), "it has grown since")
	h = &host{options: Options{Expect: 3, Join: []string{"a", "b", "c"}}, peers: &peers{}}
	require.False(t, h.alone())
}
