package raftstore_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/raftstore"
	"github.com/weir-project/weir/raftstore/internal/failure"
)

// TestAMemberThatLostItsLogIsRefused checks that a member with an identity but without its term, vote or entries does
// not start.
func TestAMemberThatLostItsLogIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		lost []string
		says string
	}{
		"log and images": {[]string{"shared-log", "table"}, "no term in its log"},
		"log":            {[]string{"shared-log"}, "no term in its log"},
	} {
		t.Run(name, func(t *testing.T) { refusesWithout(t, c.says, c.lost...) })
	}
}

func refusesWithout(t *testing.T, says string, lost ...string) {
	c := newCluster(t, 1, nil)
	c.leader()
	require.Eventually(t, func() bool {
		b, err := os.ReadFile(filepath.Join(c.opts[0].DataDir, "NODE"))
		return err == nil && strings.Contains(string(b), `"Joined":true`)
	}, patience, time.Millisecond)
	require.NoError(t, c.nodes[0].Snapshot())
	require.NoError(t, c.nodes[0].Close())
	c.nodes[0] = nil
	for _, name := range lost {
		require.NoError(t, os.RemoveAll(filepath.Join(c.opts[0].DataDir, name)))
	}
	o := c.opts[0]
	o.Listener = listener(t)
	_, err := raftstore.OpenAlone(o)
	require.ErrorIs(t, err, failure.ErrDamaged)
	require.ErrorContains(t, err, says)
}
