package raftlog

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/raftstore/internal/timers"
)

func TestAHungWriteIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := Guard(&slowStore{raft.NewInmemStore(), time.Minute}, func(err error) { t.Error(err) })
		awake := func(d time.Duration) {
			for ; d > 0; d -= timers.HousekeepEvery {
				time.Sleep(timers.HousekeepEvery)
				g.Tick()
			}
		}
		g.Tick()
		go g.StoreLog(&raft.Log{Index: 1})
		awake(HungAfter - time.Second)
		_, yes := g.Hung(HungAfter)
		require.False(t, yes)
		awake(2 * time.Second)
		what, yes := g.Hung(HungAfter)
		require.True(t, yes)
		require.Equal(t, "store entries", what)
		awake(time.Minute)
		_, yes = g.Hung(HungAfter)
		require.False(t, yes, "the write has ended")
	})
}

// TestAPauseIsNoHungWrite checks that a pause of the process does not count as a hung disk.
func TestAPauseIsNoHungWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := Guard(&slowStore{raft.NewInmemStore(), time.Hour}, func(err error) { t.Error(err) })
		g.Tick()
		go g.StoreLog(&raft.Log{Index: 1})
		synctest.Wait()
		for range 3 {
			time.Sleep(10 * HungAfter) // no tick comes while the process is paused
			g.Tick()
			_, yes := g.Hung(HungAfter)
			require.False(t, yes)
		}
		for range HungAfter / timers.HousekeepEvery {
			time.Sleep(timers.HousekeepEvery)
			g.Tick()
		}
		_, yes := g.Hung(HungAfter)
		require.True(t, yes)
		time.Sleep(time.Hour) // the write ends
	})
}

func TestTheMedianOfAppendsIgnoresHiccups(t *testing.T) {
	var a Times
	for range RecentAppends - 1 {
		a.Add(time.Millisecond)
		require.Zero(t, a.Median(), "there are too few appends")
	}
	for range RecentAppends / 2 {
		a.Add(time.Second)
	}
	require.Equal(t, time.Millisecond, a.Median())
	a.Add(time.Second)
	require.Equal(t, time.Second, a.Median())
}

// slowStore is a log whose appends take as long as the test says.
type slowStore struct {
	*raft.InmemStore
	takes time.Duration
}

func (s *slowStore) StoreLogs(ls []*raft.Log) error {
	time.Sleep(s.takes) // in fake time
	return s.InmemStore.StoreLogs(ls)
}
