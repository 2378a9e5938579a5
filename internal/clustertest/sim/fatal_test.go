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
