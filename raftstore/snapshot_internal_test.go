package raftstore

import (
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/internal/snapshots"
)

// TestASnapshotOfNothing: a snapshot is no failure on a node that waits to join and has applied nothing.
func TestASnapshotOfNothing(t *testing.T) {
	n := newBareNode(t)
	n.keepImages(t)
	require.NoError(t, n.group.snapshots.Take())
	require.NotContains(t, n.said.String(), "no snapshot could be taken")
}

// TestASnapshotEndsTheCount: a snapshot resets the count of the log since the last one, and records its time.
func TestASnapshotEndsTheCount(t *testing.T) {
	n := newBareNode(t)
	n.keepImages(t)
	require.Zero(t, n.LastSave())
	n.group.fsm.LogBytes.Store(9000)
	n.group.fsm.LogEntries.Store(30)
	before := time.Now()
	require.NoError(t, n.group.snapshots.Take())
	require.Zero(t, n.group.fsm.LogBytes.Load())
	require.Zero(t, n.group.fsm.LogEntries.Load())
	require.WithinRange(t, n.LastSave(), before.Add(-time.Nanosecond), time.Now())

	require.NoError(t, n.group.raft.Shutdown().Error())
	n.group.fsm.LogEntries.Store(7)
	saved := n.LastSave()
	require.ErrorIs(t, n.group.snapshots.Take(), failure.ErrUnavailable)
	require.EqualValues(t, 7, n.group.fsm.LogEntries.Load())
	require.Equal(t, saved, n.LastSave())
}

// TestSnapshotsTakeTurns: nodes that count the same log do not write at the same time.
func TestSnapshotsTakeTurns(t *testing.T) {
	m := []raft.Server{{ID: "b"}, {ID: "c"}, {ID: "a"}}
	require.EqualValues(t, 300, snapshots.TurnOf(m, "a", 900))
	require.EqualValues(t, 600, snapshots.TurnOf(m, "b", 900))
	require.EqualValues(t, 900, snapshots.TurnOf(m, "c", 900))
	require.EqualValues(t, 900, snapshots.TurnOf(m, "d", 900), "not a member yet")
	require.EqualValues(t, 900, snapshots.TurnOf(nil, "a", 900))
}
