package consensus_test

import (
	"io"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/raftstore/internal/consensus"
)

// hung is an FSM that applies no entry until the channel is closed.
type hung chan struct{}

func (h hung) Apply(*raft.Log) any                { <-h; return nil }
func (hung) Snapshot() (raft.FSMSnapshot, error)  { return nil, io.EOF }
func (hung) Restore(snapshot io.ReadCloser) error { return snapshot.Close() }

// TestAnUnansweredRequestEnds checks that a wait for a request which the library never answers ends with the library,
// and leaves no goroutine behind.
func TestAnUnansweredRequestEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		addr, transport := raft.NewInmemTransport("")
		config := raft.DefaultConfig()
		config.LocalID, config.LogOutput = "n1", io.Discard
		fsm, store := hung(make(chan struct{})), raft.NewInmemStore()
		library, err := raft.NewRaft(config, fsm, store, store, raft.NewDiscardSnapshotStore(), transport)
		require.NoError(t, err)
		servers := []raft.Server{{ID: "n1", Address: addr}}
		require.NoError(t, library.BootstrapCluster(raft.Configuration{Servers: servers}).Error())
		require.True(t, <-library.LeaderCh())

		c := consensus.Raft{Raft: library, Ended: make(chan struct{})}
		entry, barrier := library.Apply(nil, 0), library.Barrier(0)
		synctest.Wait()
		before := runtime.NumGoroutine()
		time.AfterFunc(time.Second, func() { close(c.Ended) })
		require.Equal(t, raft.ErrRaftShutdown, c.Await(entry))
		require.Equal(t, raft.ErrRaftShutdown, c.Await(barrier))
		synctest.Wait()
		require.Equal(t, before, runtime.NumGoroutine())
		close(fsm)
		require.NoError(t, library.Shutdown().Error())
		require.Equal(t, raft.ErrRaftShutdown, c.Await(library.Apply(nil, 0)))
	})
}
