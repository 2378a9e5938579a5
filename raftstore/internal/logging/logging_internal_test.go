package logging

import (
	"errors"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// TestWhatBelongsToStart checks that a leader which needs an image for a new node reports no error, and that other
// failures to read the log stay errors.
func TestWhatBelongsToStart(t *testing.T) {
	for _, text := range []string{"failed to get log", "failed to get previous log"} {
		require.True(t, BelongsToStart(Line{text, []any{"index", 1, "error", raft.ErrLogNotFound}}))
		require.False(t, BelongsToStart(Line{text, []any{"index", 1, "error", errors.New("input/output error")}}))
		require.False(t, BelongsToStart(Line{text, nil}))
	}
	require.True(t, BelongsToStart(Line{"heartbeat timeout reached, starting election",
		[]any{"last-leader-id", raft.ServerID("")}}))
	require.False(t, BelongsToStart(Line{"heartbeat timeout reached, starting election",
		[]any{"last-leader-id", raft.ServerID("a")}}))
}
