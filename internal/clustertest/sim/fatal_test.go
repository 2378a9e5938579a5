package sim

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore"
)

// TestWhatAFailedDiskExcuses checks which fatal errors a failed disk explains. A failed disk may stop a node, but it
// damages and reorders nothing.
func TestWhatAFailedDiskExcuses(t *testing.T) {
	p := &process{host: &host{}, disk: &disk{failed: true}, logs: logs{{}}}
	for err, excused := range map[error]bool{
		raftstore.ErrLogFailed: true, errCrashed: true,
		raftstore.ErrDiverged: false, raftstore.ErrDisputed: false, raftstore.ErrBadEntry: false,
		raftstore.ErrNewer: false, raftstore.ErrStuck: false,
		raftstore.ErrRemoved: false, raftstore.ErrLostState: false, raftstore.ErrRemovedID: false,
		persistence.ErrDamagedLive: false, persistence.ErrDisk: false,
	} {
		require.Equal(t, excused, p.expected(err), "%v", err)
	}
}

// TestWhoMayStayOut checks that a process may refuse to start only after its removal was requested, and for no other
// reason.
func TestWhoMayStayOut(t *testing.T) {
	removed, member := &process{host: &host{removed: true}}, &process{host: &host{}}
	for _, err := range []error{raftstore.ErrRemoved, raftstore.ErrRemovedID} {
		require.True(t, removed.mayStayOut(err), "%v", err)
		require.False(t, member.mayStayOut(err), "%v", err)
	}
	require.False(t, removed.mayStayOut(raftstore.ErrDiverged))
}
