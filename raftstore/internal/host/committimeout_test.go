package host

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestCommitTimeout checks that the leader of the only group sends the commit index as early as ever. A group of
// several sends it once in a heartbeat timeout.
func TestCommitTimeout(t *testing.T) {
	for _, groups := range []int{0, 1} {
		o := Options{Groups: groups, Heartbeat: DefaultHeartbeat}
		require.Equal(t, 50*time.Millisecond, o.CommitTimeout())
		o.Heartbeat = 100 * time.Millisecond
		require.Equal(t, 10*time.Millisecond, o.CommitTimeout())
	}
	o := Options{Groups: 2, Heartbeat: DefaultHeartbeat}
	require.Equal(t, DefaultHeartbeat, o.CommitTimeout())
}
