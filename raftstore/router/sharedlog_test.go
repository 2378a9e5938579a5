package router_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	wal "github.com/hashicorp/raft-wal"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/raftstore"
	"github.com/weir-project/weir/raftstore/internal/identity"
	"github.com/weir-project/weir/raftstore/router"
	"github.com/weir-project/weir/raftstore/wallog"
)

// segments returns the files of all logs in a data directory.
func segments(t *testing.T, dir string) (names []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if filepath.Ext(path) == ".wal" {
			names = append(names, path)
		}
		return err
	}))
	return names
}

// TestGroupsShareALog checks that all groups of a node write to one log, and that a restart of all nodes at once loses
// nothing.
func TestGroupsShareALog(t *testing.T) {
	const groups = 4
	for _, durability := range []raftstore.Durability{raftstore.Fsync, raftstore.OS} {
		t.Run(string(durability), func(t *testing.T) {
			c := newTier(t, 3, groups, func(o *raftstore.Options) { o.Durability = durability })
			var keys []string
			for g := range groups {
				keys = append(keys, keyIn(g, groups))
			}
			c.led(c.nodes[0])
			require.EqualValues(t, groups, c.take(c.nodes[0], keys))
			for i := range c.nodes {
				c.stop(i)
				names := segments(t, c.opts[i].DataDir)
				require.Len(t, names, 1)
				require.Equal(t, filepath.Join(c.opts[i].DataDir, "shared-log"), filepath.Dir(names[0]))
			}
			for i := range c.nodes {
				c.restart(i)
			}
			c.led(c.nodes[0])
			for _, key := range keys {
				info, found := c.nodes[0].Inspect([]byte(key))
				require.True(t, found)
				require.EqualValues(t, 1, info.Used)
			}
			require.Empty(t, c.fatal)
		})
	}
}

// TestADamagedSharedLogRefusesTheNode flips a bit in an acknowledged entry. No group of the node starts.
func TestADamagedSharedLogRefusesTheNode(t *testing.T) {
	const groups = 4
	c := newTier(t, 3, groups)
	c.led(c.nodes[0])
	require.EqualValues(t, 1, c.take(c.nodes[0], []string{keyIn(3, groups)}))
	c.stop(0)
	name := segments(t, c.opts[0].DataDir)[0]
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	b[200] ^= 1
	require.NoError(t, os.WriteFile(name, b, 0o600))
	o := c.opts[0]
	o.Listener = listen(t, o.RaftAddr)
	_, err = router.Open(o)
	require.ErrorIs(t, err, wal.ErrCorrupt)
	require.ErrorContains(t, err, "this node does not start, and has changed nothing")
	after, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, b, after)
}

// TestANodeThatLostItsSharedLogIsRefused checks a node whose shared log is gone: its groups have forgotten their votes.
// The same is true for a group that has lost the name of its part.
func TestANodeThatLostItsSharedLogIsRefused(t *testing.T) {
	const groups = 2
	c := newTier(t, 3, groups)
	for _, n := range c.nodes {
		c.led(n)
	}
	require.Eventually(t, c.nodes[0].Joined, patience, 10*time.Millisecond)
	c.stop(0)
	dir := c.opts[0].DataDir
	open := func() error {
		o := c.opts[0]
		o.Listener = listen(t, o.RaftAddr)
		n, err := router.Open(o)
		if err == nil {
			require.NoError(t, n.Close())
		}
		return err
	}
	for _, lost := range []string{
		filepath.Join(dir, "shared-log"), filepath.Join(raftstore.GroupDir(dir, 1), "log-part"),
	} {
		require.NoError(t, os.Rename(lost, lost+".away"))
		require.ErrorContains(t, open(), "no term in its log")
		require.NoError(t, os.RemoveAll(lost))
		require.NoError(t, os.Rename(lost+".away", lost))
	}
	require.NoError(t, open())
}

// TestAnEndedGroupFreesItsEntries checks that the entries of a group which has ended on a node no longer count as live
// in the shared log, at its close and after a restart, and that the others stay.
func TestAnEndedGroupFreesItsEntries(t *testing.T) {
	const groups, group, node = 4, 2, 2
	c := newTier(t, 3, groups)
	for _, n := range c.nodes {
		c.led(n)
	}
	var keys []string
	for range 200 {
		keys = append(keys, keyIn(group, groups))
	}
	for range 20 {
		c.take(c.nodes[0], keys)
	}
	c.removed(func() error { return c.nodes[0].RemoveFromGroup("n2", group) })
	c.hasEnded(c.nodes[node], group)
	before := c.nodes[node].LiveLogBytes()
	require.Eventually(t, func() bool { return c.nodes[node].LiveLogBytes() < before }, patience, 10*time.Millisecond)
	c.stop(node)
	c.restart(node)
	c.hasEnded(c.nodes[node], group)
	require.Less(t, c.nodes[node].LiveLogBytes(), before)
	c.servesAllBut(c.nodes[node], group, groups)
	require.Empty(t, c.fatal)
}

// TestTheSharedLogIsCountedWithoutTheFirstGroup checks the size on disk of a node on which the first group has ended. The
// directory of that group has the shared log.
func TestTheSharedLogIsCountedWithoutTheFirstGroup(t *testing.T) {
	const groups, node = 2, 2
	c := newTier(t, 3, groups)
	for _, n := range c.nodes {
		c.led(n)
	}
	counted := func() {
		c.hasEnded(c.nodes[node], 0)
		s, ok := c.nodes[node].Storage()
		require.True(t, ok)
		require.Greater(t, s.UsedBytes, uint64(wallog.HeadroomBytes))
		require.Positive(t, s.FreeBytes)
		require.Positive(t, s.SizeBytes)
	}
	c.stop(node)
	dir := c.opts[node].DataDir
	id, _, err := identity.Read(vfs.Default, dir)
	require.NoError(t, err)
	id.Diverged = "a test"
	require.NoError(t, identity.Write(vfs.Default, dir, id))
	c.restart(node)
	counted()
}

// TestTheGroupThatPinsTheLogWritesASnapshot checks a group that writes little beside a busy one. It keeps the oldest
// file of the shared log, so it is asked for a snapshot, and the snapshot frees the file. The log never becomes so long
// that the host writes the entries of the group again.
func TestTheGroupThatPinsTheLogWritesASnapshot(t *testing.T) {
	const groups, slow, busy = 2, 0, 1
	const rewritten = 4 * wallog.HeadroomBytes // dead bytes from which on the host writes live entries again
	c := newTier(t, 1, groups, func(o *raftstore.Options) { o.SnapshotBytes = 1 })
	n := c.nodes[0]
	c.led(n)
	taken := c.take(n, []string{keyIn(slow, groups)})
	oldest := segments(t, c.opts[0].DataDir)[0]
	var keys []string
	for i := range 500 {
		keys = append(keys, fmt.Sprint(strings.Repeat("k", 500), i, keyIn(busy, groups)))
	}
	// The busy group waits for its own snapshots, so that the dead bytes grow in small steps on any machine.
	write := func() {
		c.take(n, keys)
		taken += c.take(n, []string{keyIn(slow, groups)})
		require.Eventually(t, func() bool { return n.Group(busy).Consensus().LogBytes < wallog.HeadroomBytes/2 },
			patience, time.Millisecond)
	}
	for n.Group(slow).LastSave().IsZero() {
		require.Less(t, n.DeadLogBytes(), int64(rewritten), "the group must be asked for a snapshot")
		write()
	}
	for exists := true; exists; {
		require.Less(t, n.DeadLogBytes(), int64(rewritten), "the snapshot must free the oldest file")
		write()
		_, err := os.Stat(oldest)
		exists = !os.IsNotExist(err)
	}
	c.stop(0)
	c.restart(0)
	c.led(c.nodes[0])
	info, found := c.nodes[0].Inspect([]byte(keyIn(slow, groups)))
	require.True(t, found)
	require.Equal(t, taken, info.Used)
	require.Empty(t, c.fatal)
}
