package raftstore_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/raftstore"
)

// TestGoOnWithoutTheMajority: the node that is left of three becomes the cluster when
// the operator says so, with its counts, and only once.
func TestGoOnWithoutTheMajority(t *testing.T) {
	c := newCluster(t, 3, nil)
	leader, at := c.leader()
	c.take(leader, "key", 10)
	require.NoError(t, leader.Snapshot())
	c.take(leader, "key", 10)
	c.agree()
	for i := range 3 {
		c.stop(i)
	}
	file := filepath.Join(c.opts[at].DataDir, "recover.json")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, `[{"id": %q, "addr": %q}]`, c.opts[at].NodeID, c.opts[at].RaftAddr), 0o600))
	c.restart(at)
	leader, _ = c.leader()
	require.EqualValues(t, 7, c.take(leader, "key", 10).Remaining)
	require.NoFileExists(t, file)
	c.stop(at)
	c.restart(at)
	leader, _ = c.leader()
	require.EqualValues(t, 6, c.take(leader, "key", 10).Remaining)
}

func TestABadRecoveryFileIsRefused(t *testing.T) {
	for name, content := range map[string]string{
		"not JSON": "a,b", "nobody": "[]", "no address": `[{"id": "a"}]`, "without this node": `[{"id": "stranger", "addr": "127.0.0.1:1"}]`,
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 1, nil)
			c.leader()
			c.stop(0)
			file := filepath.Join(c.opts[0].DataDir, "recover.json")
			require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
			o := c.opts[0]
			o.Listener = listener(t)
			_, err := raftstore.Open(o)
			require.ErrorContains(t, err, "recover.json")
			require.FileExists(t, file, "it can be mended where it is")
		})
	}
}
