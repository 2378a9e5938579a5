package transport

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/raftstore/internal/raftlog"
)

// TestTheGateOpensWhenTheDiskAnswers checks that a leader withholds heartbeats exactly while an append is stuck.
func TestTheGateOpensWhenTheDiskAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, takes = 100 * time.Millisecond, 3 * time.Second
		g := &Gate{Logs: raftlog.Guard(&slowStore{raft.NewInmemStore(), takes}, nil), Limit: limit,
			Log: slog.New(slog.DiscardHandler)}
		start := time.Now()
		g.Wait()
		go g.Logs.StoreLog(&raft.Log{Index: 1})
		time.Sleep(limit)
		g.Wait()
		require.Equal(t, limit, time.Since(start), "the gate must not wait before the limit")
		time.Sleep(time.Millisecond)
		g.Wait()
		require.GreaterOrEqual(t, time.Since(start), takes, "the gate must wait until the append ends")
		require.Less(t, time.Since(start), takes+2*GatePause)
		g.Wait()
		synctest.Wait()
	})
}

func TestTheGateOpensWhenTheNodeCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		g := &Gate{Logs: raftlog.Guard(&slowStore{raft.NewInmemStore(), time.Hour}, nil), Stop: stop,
			Log: slog.New(slog.DiscardHandler)}
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

// slowStore is a log whose appends take as long as the test says.
type slowStore struct {
	*raft.InmemStore
	takes time.Duration
}

func (s *slowStore) StoreLogs(ls []*raft.Log) error {
	time.Sleep(s.takes) // in fake time
	return s.InmemStore.StoreLogs(ls)
}
