package logging

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestALineAboutANodeIsLoggedOncePerPeriod(t *testing.T) {
	var r Repeats
	now := time.Unix(0, 0)
	require.False(t, r.Seen("failed to heartbeat to", "b", now))
	require.False(t, r.Seen("failed to heartbeat to", "c", now), "another node")
	require.False(t, r.Seen("failed to contact", "b", now), "another text")
	require.True(t, r.Seen("failed to heartbeat to", "b", now.Add(repeatAfter-1)))
	require.False(t, r.Seen("failed to heartbeat to", "b", now.Add(repeatAfter)))
	require.True(t, r.Seen("failed to heartbeat to", "b", now.Add(2*repeatAfter-1)), "counted from the line before")
}

func TestRepeatsAreBounded(t *testing.T) {
	var r Repeats
	now := time.Unix(0, 0)
	for i := range 2 * maxRepeats {
		require.False(t, r.Seen("text", strconv.Itoa(i), now))
	}
	require.Len(t, r.logged, maxRepeats)
	require.False(t, r.Seen("new", "b", now.Add(repeatAfter)))
	require.Len(t, r.logged, 1, "the old lines are forgotten")
}
