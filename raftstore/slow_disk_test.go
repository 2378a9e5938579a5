package raftstore_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/raftstore"
)

// slowLog is a log whose appends take as long as the test says.
type slowLog struct {
	*raft.InmemStore
	takes atomic.Int64 // nanoseconds
}

func (s *slowLog) StoreLogs(ls []*raft.Log) error {
	time.Sleep(time.Duration(s.takes.Load()))
	return s.InmemStore.StoreLogs(ls)
}

func (s *slowLog) StoreLog(l *raft.Log) error { return s.StoreLogs([]*raft.Log{l}) }

// TestALeaderWithASlowDiskHandsOver checks that a leader with a slow disk transfers leadership, although its
// followers still hear from it in time.
func TestALeaderWithASlowDiskHandsOver(t *testing.T) {
	const slow = 150 * time.Millisecond
	var logs [3]slowLog
	c := newCluster(t, 3, func(i int, o *raftstore.Options) {
		logs[i].InmemStore, o.Log = raft.NewInmemStore(), append(o.Log, &logs[i])
	})
	_, at := c.leader()
	logs[at].takes.Store(int64(slow))
	for range 20 { // these appends show the leader that its disk is slow
		c.take(c.nodes[at], "key", 1000)
	}
	require.Eventually(t, func() bool {
		leader := c.nodes[at].Topology().Leader
		return leader != "" && leader != c.opts[at].NodeID
	}, patience, 10*time.Millisecond, "the slow node still leads")
	require.Empty(t, c.fatal)
	_, next := c.leader()
	require.NotEqual(t, at, next)
	c.agree()
}
