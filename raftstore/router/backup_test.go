package router_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore"
	"github.com/weir-project/weir/raftstore/router"
)

// backUp returns a backup. It repeats one that fails, because a group may elect its leader.
func backUp(t *testing.T, from limiter.Archiver) []byte {
	t.Helper()
	var b *limiter.Backup
	var err error
	made := assert.Eventually(t, func() bool {
		b, err = from.Backup()
		return err == nil
	}, patience, 10*time.Millisecond)
	require.True(t, made, "%v", err)
	all, err := io.ReadAll(b)
	require.NoError(t, err)
	require.EqualValues(t, b.Bytes, len(all))
	require.NoError(t, b.Close())
	return all
}

// restored starts a node of a new cluster of some groups from a backup.
func restored(t *testing.T, backup []byte, groups int) *router.Node {
	return restoredWith(t, backup, groups, 0)
}

// restoredWith is restored for a cluster whose groups shall have some replicas.
func restoredWith(t *testing.T, backup []byte, groups, replicas int) *router.Node {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	quiet := slog.New(slog.DiscardHandler)
	o := raftstore.Options{NodeID: "r", DataDir: t.TempDir(), RaftAddr: l.Addr().String(), ClientAddr: "client",
		Listener: l, Heartbeat: 500 * time.Millisecond, Logger: quiet}
	_, err = raftstore.Restore(raftstore.RestoreOptions{NodeID: o.NodeID, RaftAddr: o.RaftAddr, Groups: groups,
		Replicas: replicas,
		Store:    persistence.StoreOptions{Dir: o.DataDir, Logger: quiet}}, bytes.NewReader(backup))
	require.NoError(t, err)
	has, _, err := raftstore.FoundingOf(&o)
	require.NoError(t, err)
	o.Groups, o.Replicas = has.Groups, has.Replicas
	n, err := router.Open(o)
	require.NoError(t, err)
	t.Cleanup(func() { n.Close() })
	require.Eventually(t, func() bool { return n.ReadIndex() == nil }, patience, 10*time.Millisecond)
	return n
}

// keyed is n operations on keys of many slots.
func keyed(n int, each func(key string) engine.Op) (ops []engine.Op) {
	for i := range n {
		ops = append(ops, each(fmt.Sprintf("{%d}", i)))
	}
	return ops
}

// decided carries out operations, which must succeed.
func decided(t *testing.T, n *router.Node, ops ...engine.Op) []engine.Decision {
	t.Helper()
	out := make([]engine.Decision, len(ops))
	require.Eventually(t, func() bool {
		if n.Decide(ops, out) != nil {
			return false
		}
		for i := range out {
			if out[i].Status != engine.OK {
				return false
			}
		}
		return true
	}, patience, 10*time.Millisecond)
	return out
}

// TestABackupOfATier moves a tier through clusters of other numbers of groups. Policies, usage, holds, blocks and blocks
// everywhere arrive each time, and the result of the last restore equals the tier.
func TestABackupOfATier(t *testing.T) {
	const keys = 40
	c := newTier(t, 1, 4)
	var n *router.Node = c.nodes[0]
	c.led(c.nodes[0])
	terms := &engine.Policy{Limits: []engine.PolicyLimit{{Limit: quota("", 100).Limit}}}
	decided(t, n, engine.Op{Code: engine.OpPolicy, Key: []byte("p"), Policy: &engine.PolicyChange{Terms: terms}})
	decided(t, n, engine.Op{Code: engine.OpBlockEverywhere, Key: []byte("ip:9"), TTLNs: engine.Never})
	decided(t, n, keyed(keys, func(key string) engine.Op { return quota(key, 1000) })...)
	decided(t, n, keyed(keys, func(key string) engine.Op {
		return engine.Op{Code: engine.OpReserve, Key: []byte(key + "h"), Text: []byte("p"), ID: []byte(key + "id"),
			Cost: 30, TTLNs: int64(time.Hour)}
	})...)
	decided(t, n, keyed(keys, func(key string) engine.Op {
		return engine.Op{Code: engine.OpBlock, Key: []byte(key + "b"), TTLNs: engine.Never}
	})...)
	backup := backUp(t, n)
	decided(t, n, quota("{0}", 1000)) // after the backup, so not in it
	for _, groups := range []int{0, 1, 4, 16, 2} {
		n = restored(t, backup, groups)
		require.EqualValues(t, 3*keys+1, n.Len(0), "%d groups", groups)
		require.Equal(t, []string{"ip:9"}, n.BlocksEverywhere().Keys())
		require.NotNil(t, n.Policies().Get([]byte("p")))
		for i := range keys {
			info, found := n.Inspect([]byte(fmt.Sprintf("{%d}", i)))
			require.True(t, found)
			require.EqualValues(t, 1, info.Used)
		}
		backup = backUp(t, n)
	}
	for _, d := range decided(t, n, keyed(keys, func(key string) engine.Op {
		return engine.Op{Code: engine.OpCommit, Key: []byte(key + "id"), Cost: 10}
	})...) {
		require.Equal(t, engine.Decision{Allowed: 1, Remaining: 90}, d)
	}
	for _, d := range decided(t, n, keyed(keys, func(key string) engine.Op { return quota(key+"b", 9) })...) {
		require.Zero(t, d.Allowed)
	}
	for _, d := range decided(t, n, keyed(keys, func(key string) engine.Op { return quota(key+"|ip:9", 9) })...) {
		require.Zero(t, d.Allowed)
	}
}

// TestARestoreOfGroupsRefusesOtherNumbers checks that the number of groups must be a power of two.
func TestARestoreOfGroupsRefusesOtherNumbers(t *testing.T) {
	for _, groups := range []int{-1, 3, 2048} {
		_, err := raftstore.Restore(raftstore.RestoreOptions{NodeID: "r", RaftAddr: "127.0.0.1:1", Groups: groups,
			Store: persistence.StoreOptions{Dir: t.TempDir()}}, bytes.NewReader(nil))
		require.ErrorContains(t, err, "--groups must be a power of two")
	}
}
