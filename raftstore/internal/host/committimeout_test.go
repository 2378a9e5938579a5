package host

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestCommitTimeout checks that one group tells its followers of a commit as soon as before, and that a group of
// several sends few messages while it is idle.
func TestCommitTimeout(t *testing.T) {
	for _, groups := range []int{0, 1} {
		o := Options{Groups: groups, Heartbeat: defaultHeartbeat}
		require.Equal(t, 50*time.Millisecond, o.CommitTimeout())
		o.Heartbeat = 100 * time.Millisecond
		require.Equal(t, 10*time.Millisecond, o.CommitTimeout())
	}
	o := Options{Groups: 2, Heartbeat: defaultHeartbeat}
	require.Equal(t, defaultHeartbeat, o.CommitTimeout())
}
