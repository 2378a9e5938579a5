package router_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/freeport"
	"github.com/weir-project/weir/raftstore/router"
)

const recoveryFile = "recover.json"

// recoverWith writes a recovery file to stopped nodes. Their next start recovers the groups without the other nodes.
func (c *tier) recoverWith(at ...int) {
	c.t.Helper()
	var left []map[string]string
	for _, i := range at {
		left = append(left, map[string]string{"id": c.opts[i].NodeID, "addr": c.opts[i].RaftAddr})
	}
	content, err := json.Marshal(left)
	require.NoError(c.t, err)
	for _, i := range at {
		require.NoError(c.t, os.WriteFile(filepath.Join(c.opts[i].DataDir, recoveryFile), content, 0o600))
	}
}

// recoveryFiles returns the recovery files of a node that no group has used yet.
func (c *tier) recoveryFiles(i int) []string {
	found, err := filepath.Glob(filepath.Join(c.opts[i].DataDir, recoveryFile))
	require.NoError(c.t, err)
	of, err := filepath.Glob(filepath.Join(c.opts[i].DataDir, "groups", "*", recoveryFile))
	require.NoError(c.t, err)
	return append(found, of...)
}

// killedAt is the disk of a process that ends just before a rename.
type killedAt struct {
	vfs.FS
	rename string // "FROM TO", relative to the data directory of the node
	dir    string
}

func (k killedAt) Rename(from, to string) error {
	if strings.HasPrefix(strings.TrimPrefix(from, k.dir+"/")+" "+strings.TrimPrefix(to, k.dir+"/"), k.rename) {
		return errors.New("killed")
	}
	return k.FS.Rename(from, to)
}

// TestGroupsGoOnWithoutTheMajority checks that one of three nodes goes on with all of its groups, and with their
// counts, wherever the process that recovers them was killed.
func TestGroupsGoOnWithoutTheMajority(t *testing.T) {
	const groups = 4
	c := newTier(t, 3, groups)
	keys := someKeys(32)
	c.led(c.nodes[0])
	require.EqualValues(t, len(keys), c.take(c.nodes[0], keys))
	for _, n := range c.nodes {
		c.led(n)
	}
	for i := range c.nodes {
		c.stop(i)
	}
	at, taken := 1, int64(1)
	for _, rename := range []string{
		"",
		"groups/0002/" + recoveryFile + ".tmp",
		recoveryFile + " " + recoveryFile + ".done",
		"groups/0003/" + recoveryFile + " groups/0003/" + recoveryFile + ".done",
	} {
		c.recoverWith(at)
		if rename != "" {
			o := c.opts[at]
			o.FS, o.Listener = killedAt{vfs.Default, rename, o.DataDir}, listen(t, o.RaftAddr)
			_, err := router.Open(o)
			require.ErrorContains(t, err, "killed", rename)
			require.NotEmpty(t, c.recoveryFiles(at))
		}
		c.restart(at)
		c.led(c.nodes[at])
		require.EqualValues(t, len(keys), c.take(c.nodes[at], keys))
		taken++
		c.counts(c.nodes[at], keys, taken)
		for group, g := range c.nodes[at].Topology().Groups {
			require.Greater(t, g.Term, uint64(taken-1)<<20, "each recovery of group %d raises its term", group)
		}
		require.Empty(t, c.recoveryFiles(at))
		c.stop(at)
	}
	require.Empty(t, c.fatal)
}

// TestARefusedRecoveryChangesNoGroup checks that a bad recovery file has no effect in any group, even if it is removed.
func TestARefusedRecoveryChangesNoGroup(t *testing.T) {
	c := newTier(t, 1, 2)
	keys := someKeys(8)
	c.led(c.nodes[0])
	c.take(c.nodes[0], keys)
	before := c.nodes[0].Topology().Groups[1].Term
	c.stop(0)
	file := filepath.Join(c.opts[0].DataDir, recoveryFile)
	content := `[{"id": "n0", "addr": "` + c.opts[0].RaftAddr + `"}, {"id": "stranger", "addr": "127.0.0.1:1"}]`
	require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
	o := c.opts[0]
	o.Listener = listen(t, o.RaftAddr)
	_, err := router.Open(o)
	require.ErrorContains(t, err, `"stranger" is not a node of the cluster, its nodes are n0`)
	require.Equal(t, []string{file}, c.recoveryFiles(0))
	require.NoError(t, os.Remove(file))
	c.restart(0)
	c.led(c.nodes[0])
	require.Less(t, c.nodes[0].Topology().Groups[1].Term, before+1000, "the group was not recovered")
}

// TestGroupsThatKeepAMajorityGoOn checks the loss of two nodes of a tier whose groups have three replicas. The groups
// that lost two go on with the third, and the others as they were. Then all nodes that are left move to other addresses
// at once, which another file names. The groups always keep their counts.
func TestGroupsThatKeepAMajorityGoOn(t *testing.T) {
	const size, groups, replicas = 5, 8, 3
	c := newTier(t, size, groups, withReplicas(replicas))
	c.placed(replicas)
	keys := someKeys(64)
	for _, n := range c.nodes {
		require.EqualValues(t, len(keys), c.take(n, keys))
	}
	has := make([][]string, groups)
	for i, g := range c.nodes[0].Topology().Groups {
		for _, m := range g.Members {
			has[i] = append(has[i], m.ID)
		}
	}
	lost := func(group int, nodes ...string) (n int) {
		for _, id := range nodes {
			if slices.Contains(has[group], id) {
				n++
			}
		}
		return n
	}
	gone := has[1][:2]
	var left []int
	for i := range c.nodes {
		c.stop(i)
		if !slices.Contains(gone, c.opts[i].NodeID) {
			left = append(left, i)
		}
	}
	c.recoverWith(left...)
	for _, i := range left {
		c.restart(i)
	}
	kept := 0
	for _, i := range left {
		n := c.nodes[i]
		c.led(n)
		require.EqualValues(t, len(keys), c.take(n, keys))
		require.Empty(t, c.recoveryFiles(i))
		for group, g := range n.Topology().Groups {
			recovered := lost(group, gone...) == 2
			require.Equal(t, recovered, g.Term > 1<<20, "group %d of %v in term %d", group, has[group], g.Term)
			if !recovered {
				kept++
			}
		}
	}
	require.Positive(t, kept)
	for _, i := range left {
		c.counts(c.nodes[i], keys, int64(size+len(left)))
	}
	for _, i := range left {
		c.stop(i)
		c.opts[i].RaftAddr = freeport.Addr(t)
	}
	c.recoverWith(left...)
	for _, i := range left {
		c.restart(i)
	}
	for _, i := range left {
		c.led(c.nodes[i])
		c.counts(c.nodes[i], keys, int64(size+len(left)))
	}
	require.Empty(t, c.fatal)
}
