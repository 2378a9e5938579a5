package raftstore

import (
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/internal/permit"
	"github.com/weir-project/weir/raftstore/internal/snapshots"
)

// TestASnapshotOfNothing checks that a snapshot on a node that has applied nothing is no error. A node that waits to
// join is in this state.
func TestASnapshotOfNothing(t *testing.T) {
	n := newBareNode(t)
	n.keepImages(t)
	require.NoError(t, n.snapshots.Take(0))
	require.NotContains(t, n.said.String(), "no snapshot could be taken")
}

// TestASnapshotEndsTheCount checks that a snapshot records its time and resets the counters of log bytes and entries.
// A failed snapshot changes neither.
func TestASnapshotEndsTheCount(t *testing.T) {
	n := newBareNode(t)
	n.keepImages(t)
	require.Zero(t, n.LastSave())
	n.fsm.LogBytes.Store(9000)
	n.fsm.LogEntries.Store(30)
	before := time.Now()
	require.NoError(t, n.snapshots.Take(0))
	require.Zero(t, n.fsm.LogBytes.Load())
	require.Zero(t, n.fsm.LogEntries.Load())
	require.WithinRange(t, n.LastSave(), before.Add(-time.Nanosecond), time.Now())

	require.NoError(t, n.raft.Shutdown().Error())
	n.fsm.LogEntries.Store(7)
	saved := n.LastSave()
	require.ErrorIs(t, n.snapshots.Take(0), failure.ErrUnavailable)
	require.EqualValues(t, 7, n.fsm.LogEntries.Load())
	require.Equal(t, saved, n.LastSave())
}

// TestSnapshotsNeedThePermit checks that neither an operator's snapshot nor one that is due begins while another group
// takes a snapshot, and that the snapshot of an operator serves as the one that is due.
func TestSnapshotsNeedThePermit(t *testing.T) {
	n := newBareNode(t)
	n.keepImages(t)
	n.snapshots.SnapshotBytes = 1000
	turn := n.snapshots.Permit.(*permit.Permit)
	require.True(t, turn.Acquire(func() int64 { return 0 }, n.own.Stop))
	n.fsm.LogBytes.Store(9000)
	n.snapshots.TakeIfDue()
	n.snapshots.TakeIfDue() // while the first one waits
	require.Eventually(t, func() bool { return turn.Waiting() == 1 }, 20*time.Second, time.Millisecond)
	taken := make(chan error, 1)
	go func() { taken <- n.Snapshot() }()
	require.Eventually(t, func() bool { return turn.Waiting() == 2 }, 20*time.Second, time.Millisecond)
	require.Zero(t, n.LastSave())

	turn.Release()
	require.NoError(t, <-taken)
	saved := n.LastSave()
	require.NotZero(t, saved)
	require.True(t, turn.AcquireForOperator(n.own.Stop))
	require.Eventually(t, func() bool { return turn.Waiting() == 0 }, 20*time.Second, time.Millisecond)
	require.Equal(t, saved, n.LastSave(), "the snapshot was no longer due")

	n.fsm.LogBytes.Store(9000)
	require.Eventually(t, func() bool {
		n.snapshots.TakeIfDue()
		return turn.Waiting() == 1
	}, 20*time.Second, time.Millisecond)
	close(n.own.Stop)
	require.ErrorIs(t, n.Snapshot(), failure.ErrUnavailable, "the node closes")
	n.own.End()
	require.Equal(t, saved, n.LastSave())
	turn.Release()
}

// TestSnapshotsTakeTurns checks that each node snapshots after a different part of the log, so nodes do not write at
// the same time.
func TestSnapshotsTakeTurns(t *testing.T) {
	m := []raft.Server{{ID: "b"}, {ID: "c"}, {ID: "a"}}
	require.EqualValues(t, 300, snapshots.FirstSnapshotBytes(m, "a", 900))
	require.EqualValues(t, 600, snapshots.FirstSnapshotBytes(m, "b", 900))
	require.EqualValues(t, 900, snapshots.FirstSnapshotBytes(m, "c", 900))
	require.EqualValues(t, 900, snapshots.FirstSnapshotBytes(m, "d", 900),
		"a node that is no member yet must take the last turn")
	require.EqualValues(t, 900, snapshots.FirstSnapshotBytes(nil, "a", 900))
}
