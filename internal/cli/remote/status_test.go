package remote

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestStatusOfTheOldestVersion checks that the status of a node of version 0.1.0, which lists no groups, is that of a
// cluster with one group, as during a rolling upgrade.
func TestStatusOfTheOldestVersion(t *testing.T) {
	text := func(s string) any { return []byte(s) }
	node := []any{text("id"), text("a"), text("voter"), int64(1), text("up"), int64(1)}
	reply := []any{text("node"), text("a"), text("leader"), text("a"), text("term"), int64(3), text("nodes"),
		[]any{node}}
	s, err := ReadStatus(reply)
	require.NoError(t, err)
	require.Equal(t, []GroupStatus{{LastSlot: 16383, Leader: "a", Term: 3}}, s.Groups)
	require.Equal(t, "led by a", s.LeadersText())
	require.Equal(t, "leads 1 of 1", s.Role(&s.Nodes[0]))
	_, err = ReadStatus(reply[:6])
	require.EqualError(t, err, "nodes: not in the status")
}
