package identity

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRemovedIDs(t *testing.T) {
	before := []string{"a"}
	now := RemovedIDs(before, []string{"a", "b", "c", "d~1"}, []string{"c"})
	require.Equal(t, []string{"a", "b"}, now)
	require.Equal(t, []string{"a"}, before)
	for i := range MaxRemovedIDs {
		now = RemovedIDs(now, []string{fmt.Sprint(i)}, nil)
	}
	require.Len(t, now, MaxRemovedIDs)
	require.NotContains(t, now, "b", "the oldest id must be dropped first")
	require.Contains(t, now, fmt.Sprint(MaxRemovedIDs-1))
}
