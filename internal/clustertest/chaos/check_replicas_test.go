package chaos

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReplicas(t *testing.T) {
	var r Replicas
	require.NoError(t, r.Add(Digest{"n1", 7, "a"}))
	require.NoError(t, r.Add(Digest{"n2", 8, "b"}))
	require.Zero(t, r.Compared())
	require.NoError(t, r.Add(Digest{"n2", 7, "a"}))
	require.Equal(t, 1, r.Compared())
	require.ErrorIs(t, r.Add(Digest{"n3", 8, "c"}), ErrDiverged)
	require.ErrorIs(t, r.Add(Digest{"n2", 8, "c"}), ErrDiverged,
		"a node must also agree with itself, before and after a restart")
}
