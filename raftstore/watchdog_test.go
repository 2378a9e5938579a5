package raftstore_test

import (
	"bytes"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/raftstore"
)

// deafConn drops the Raft library's writes while deaf returns true.
type deafConn struct {
	net.Conn
	deaf func() bool
	raft bool
	seen bool
}

func (c *deafConn) Write(b []byte) (int, error) {
	if !c.seen {
		c.seen, c.raft = true, bytes.HasPrefix(b, []byte("weir-node\x02S"))
	}
	if c.raft && c.deaf() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// TestLeaderStepsAsideForAStalledFollower checks that a leader steps down for a follower that answers calls but gets
// no entries from it.
func TestLeaderStepsAsideForAStalledFollower(t *testing.T) {
	c := newCluster(t, 3, func(_ int, o *raftstore.Options) {
		// A leader learns once a second what a member has applied. With a shorter limit every member looks stalled.
		o.StalledAfter, o.Heartbeat = 5*time.Second, 2*busy
	})
	_, at := c.leader()
	stuck := (at + 1) % 3
	at = (at + 2) % 3
	c.stop(at)
	c.opts[at].Listener = listenAt(t, c.opts[at].RaftAddr)
	var loses atomic.Bool
	node, err := raftstore.OpenLosing(c.opts[at], func(addr string) bool {
		return loses.Load() && addr == c.opts[stuck].RaftAddr
	})
	require.NoError(t, err)
	c.nodes[at] = node
	c.sees(node, 3, 3)
	leader := c.moveTo(at)
	loses.Store(true)
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() { // a leader only steps aside if other followers make progress
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(2 * time.Millisecond): // slow enough that the other follower keeps up under -race
				leader.Confirm()
			}
		}
	}()
	require.Eventually(t, func() bool { return leader.Topology().Leader != c.opts[at].NodeID },
		patience, 10*time.Millisecond)
	close(stop)
	<-done
	// An election may make the node leader again, and it steps aside once a minute at most.
	next := c.moveTo((at + 1) % 3)
	c.take(next, "key", 10)
	c.agree()
}

// brokenLog fails its appends while fail is set.
type brokenLog struct {
	*raft.InmemStore
	fail atomic.Bool
}

var errDisk = errors.New("input/output error")

func (b *brokenLog) StoreLogs(ls []*raft.Log) error {
	if b.fail.Load() {
		return errDisk
	}
	return b.InmemStore.StoreLogs(ls)
}

func (b *brokenLog) StoreLog(l *raft.Log) error { return b.StoreLogs([]*raft.Log{l}) }

func TestAFailedWriteEndsTheNode(t *testing.T) {
	logs := &brokenLog{InmemStore: raft.NewInmemStore()}
	c := newCluster(t, 1, func(_ int, o *raftstore.Options) { o.Log = append(o.Log, logs) })
	leader, _ := c.leader()
	logs.fail.Store(true)
	require.Error(t, leader.Confirm())
	err := <-c.fatal
	require.ErrorIs(t, err, raftstore.ErrLogFailed)
	require.ErrorIs(t, err, errDisk)
}
