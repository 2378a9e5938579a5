package raftstore_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/raftstore"
)

// A member that has lost its log and its images does not start as if it were new, not even
// when its identity is there: what it promised is gone.
func TestAMemberWithoutLogAndImagesIsRefused(t *testing.T) {
	c := newCluster(t, 1, nil)
	c.leader()
	require.Eventually(t, func() bool {
		b, err := os.ReadFile(filepath.Join(c.opts[0].DataDir, "NODE"))
		return err == nil && strings.Contains(string(b), `"Joined":true`)
	}, patience, time.Millisecond)
	require.NoError(t, c.nodes[0].Close())
	c.nodes[0] = nil
	for _, name := range []string{"log", "table"} {
		require.NoError(t, os.RemoveAll(filepath.Join(c.opts[0].DataDir, name)))
	}
	o := c.opts[0]
	o.Listener = listener(t)
	_, err := raftstore.Open(o)
	require.ErrorIs(t, err, raftstore.ErrDamaged)
	require.ErrorContains(t, err, "neither an image nor a log entry")
}
