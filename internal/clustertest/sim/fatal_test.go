package sim

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore"
)

// A disk that fails is a reason to stop, and no excuse for what it did not do: it damages
// and reorders nothing.
func TestWhatAFailedDiskExcuses(t *testing.T) {
	p := &process{host: &host{}, disk: &disk{failed: true}, log: &faultyLog{}}
	for err, excused := range map[error]bool{
		raftstore.ErrLogFailed: true, errCrashed: true,
		raftstore.ErrDiverged: false, raftstore.ErrDisputed: false, raftstore.ErrBadEntry: false,
		raftstore.ErrNewer: false, raftstore.ErrStuck: false,
		raftstore.ErrRemoved: false, raftstore.ErrLostState: false, raftstore.ErrSpentID: false,
		persistence.ErrDamagedLive: false, persistence.ErrDisk: false,
	} {
		require.Equal(t, excused, p.expected(err), "%v", err)
	}
}
