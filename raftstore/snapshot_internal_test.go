package raftstore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/raftstore/internal/failure"
)

// TestASnapshotOfNothing is no failure: a node that waits to join has applied nothing.
func TestASnapshotOfNothing(t *testing.T) {
	n := newBareNode(t)
	n.keepImages(t)
	require.NoError(t, n.group.snapshots.take())
	require.NotContains(t, n.said.String(), "no snapshot could be taken")
}

// TestASnapshotEndsTheCount of the log behind the last one, and says when it was.
func TestASnapshotEndsTheCount(t *testing.T) {
	n := newBareNode(t)
	n.keepImages(t)
	require.Zero(t, n.LastSave())
	n.group.machine.logBytes.Store(9000)
	n.group.machine.logEntries.Store(30)
	before := time.Now()
	require.NoError(t, n.group.snapshots.take())
	require.Zero(t, n.group.machine.logBytes.Load())
	require.Zero(t, n.group.machine.logEntries.Load())
	require.WithinRange(t, n.LastSave(), before.Add(-time.Nanosecond), time.Now())

	require.NoError(t, n.group.raft.Shutdown().Error())
	n.group.machine.logEntries.Store(7)
	saved := n.LastSave()
	require.ErrorIs(t, n.group.snapshots.take(), failure.ErrUnavailable)
	require.EqualValues(t, 7, n.group.machine.logEntries.Load())
	require.Equal(t, saved, n.LastSave())
}
