package raftstore_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/raftstore"
)

// slowLog is a log on a disk that can be slow.
type slowLog struct {
	*raft.InmemStore
	takes atomic.Int64 // nanoseconds
}

func (s *slowLog) StoreLogs(ls []*raft.Log) error {
	time.Sleep(time.Duration(s.takes.Load()))
	return s.InmemStore.StoreLogs(ls)
}

func (s *slowLog) StoreLog(l *raft.Log) error { return s.StoreLogs([]*raft.Log{l}) }

// A leader with a slow disk transfers leadership to a node with a faster disk, even if its followers still hear from
// it in time.
func TestALeaderWithASlowDiskHandsOver(t *testing.T) {
	const slow = 150 * time.Millisecond
	var logs [3]slowLog
	c := newCluster(t, 3, func(i int, o *raftstore.Options) {
		logs[i].InmemStore, o.Log = raft.NewInmemStore(), &logs[i]
		o.Heartbeat = time.Second // no election comes of a slow append
	})
	_, at := c.leader()
	logs[at].takes.Store(int64(slow))
	for range 20 { // appends that say how slow the disk is
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
