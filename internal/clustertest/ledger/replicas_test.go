package ledger

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReplicas(t *testing.T) {
	var r Replicas
	require.NoError(t, r.Add(Digest{"n1", Applied{0, 7}, "a"}))
	require.NoError(t, r.Add(Digest{"n2", Applied{0, 8}, "b"}))
	require.Zero(t, r.Compared())
	require.NoError(t, r.Add(Digest{"n2", Applied{0, 7}, "a"}))
	require.Equal(t, 1, r.Compared())
	require.NoError(t, r.Add(Digest{"n2", Applied{1, 7}, "d"}), "the entry of another group")
	require.ErrorIs(t, r.Add(Digest{"n3", Applied{0, 8}, "c"}), ErrDiverged)
	require.ErrorIs(t, r.Add(Digest{"n2", Applied{0, 8}, "c"}), ErrDiverged,
		"a node must also agree with itself, before and after a restart")
}
