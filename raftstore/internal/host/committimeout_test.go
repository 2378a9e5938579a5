package host

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestCommitTimeout checks that the leader of the only group sends the commit index as early as ever, and that more
// groups send it together no more often.
func TestCommitTimeout(t *testing.T) {
	o := Options{Groups: 1, Heartbeat: DefaultHeartbeat}
	require.Equal(t, 50*time.Millisecond, o.CommitTimeout())
	o.Groups = 4
	require.Equal(t, 200*time.Millisecond, o.CommitTimeout())
	o.Groups = 16
	require.Equal(t, DefaultHeartbeat, o.CommitTimeout())
	o.Groups, o.Heartbeat = 1, 100*time.Millisecond
	require.Equal(t, 10*time.Millisecond, o.CommitTimeout())
}
