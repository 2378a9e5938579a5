package raftstore_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore"
)

// recoverWith writes a recovery file to stopped nodes. At their next start they form the whole cluster.
func (c *cluster) recoverWith(at ...int) {
	c.t.Helper()
	var lines []string
	for _, i := range at {
		lines = append(lines, fmt.Sprintf(`{"id": %q, "addr": %q}`, c.opts[i].NodeID, c.opts[i].RaftAddr))
	}
	for n, i := range at {
		lines[0], lines[n] = lines[n], lines[0] // the order of the lines has no meaning
		require.NoError(c.t, os.WriteFile(c.recoveryFile(i), []byte("["+strings.Join(lines, ",")+"]"), 0o600))
	}
}

func (c *cluster) recoveryFile(i int) string {
	return filepath.Join(c.opts[i].DataDir, "recover.json")
}

// TestGoOnWithoutTheMajority checks that one of three nodes continues as the whole cluster with a recovery file, and
// keeps its counts. The file takes effect once.
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
	c.recoverWith(at)
	c.restart(at)
	leader, _ = c.leader()
	require.EqualValues(t, 7, c.take(leader, "key", 10).Remaining)
	require.NoFileExists(t, c.recoveryFile(at))
	images, err := os.ReadDir(filepath.Join(c.opts[at].DataDir, "table", "images"))
	require.NoError(t, err)
	require.Len(t, images, 1, "images from before the recovery must be gone")
	c.stop(at)
	c.restart(at)
	leader, _ = c.leader()
	require.EqualValues(t, 6, c.take(leader, "key", 10).Remaining)
}

// TestTheLostThatReturnAreRefused checks that survivors of one recovery find each other. The survivors neither follow
// nor lead the lost nodes, whose terms are higher.
func TestTheLostThatReturnAreRefused(t *testing.T) {
	c := newCluster(t, 5, nil)
	leader, _ := c.leader()
	c.take(leader, "key", 10)
	c.agree()
	before := leader.Topology().ClusterID
	for i := range 5 {
		c.stop(i)
	}
	c.recoverWith(0, 1)
	c.restart(0)
	c.restart(1)
	_, at := c.leader()
	for i := 2; i < 5; i++ {
		c.restart(i)
	}
	lost := &cluster{t: t, nodes: c.nodes[2:], opts: c.opts[2:]}
	_, begun := lost.leader()
	for i := range 4 { // raises the term of the lost nodes
		lost.moveTo((begun + i) % 3)
	}
	for i := range 4 {
		require.EqualValues(t, 8-i, c.take(c.nodes[i%2], "key", 10).Remaining)
		require.EqualValues(t, 8-i, c.take(lost.nodes[i%3], "key", 10).Remaining)
	}
	var now *limiter.Topology
	require.Eventually(t, func() bool { now = c.nodes[at].Topology(); return now.Leader != "" }, patience,
		time.Millisecond)
	require.Contains(t, []string{c.opts[0].NodeID, c.opts[1].NodeID}, now.Leader)
	require.Len(t, now.Nodes, 2)
	require.NotEqual(t, before, now.ClusterID)
	require.Equal(t, before, lost.nodes[0].Topology().ClusterID)

	late, err := c.grow(5, nil)
	require.NoError(t, err)
	c.sees(c.nodes[at], 3, 3)
	require.Equal(t, now.ClusterID, late.Topology().ClusterID)
}

// killedAtRename is the disk of a node that dies immediately before or after it renames the recovery file.
type killedAtRename struct {
	vfs.FS
	before bool
}

func (f killedAtRename) Rename(from, to string) error {
	if filepath.Base(from) != "recover.json" {
		return f.FS.Rename(from, to)
	}
	if f.before {
		return errors.New("killed")
	}
	return errors.Join(f.FS.Rename(from, to), errors.New("killed"))
}

// fails starts a node, and requires that the start fails.
func (c *cluster) fails(i int, on vfs.FS) error {
	c.t.Helper()
	o := c.opts[i]
	o.FS, o.Listener = on, listener(c.t)
	_, err := raftstore.OpenAlone(o)
	require.Error(c.t, err)
	return err
}

// TestAnInterruptedRecovery checks that repeating an interrupted recovery gives the same cluster on both survivors. A
// later recovery gives another cluster, although its file is the same.
func TestAnInterruptedRecovery(t *testing.T) {
	c := newCluster(t, 2, nil)
	leader, _ := c.leader()
	c.take(leader, "key", 10)
	for round := range 3 {
		leader, _ = c.leader()
		require.NoError(t, leader.Snapshot())
		before := leader.Topology().ClusterID
		c.stop(0)
		c.stop(1)
		c.recoverWith(0, 1)
		require.ErrorContains(t, c.fails(0, killedAtRename{vfs.Default, round != 1}), "killed")
		c.restart(0)
		c.restart(1)
		c.leader()
		require.NotEqual(t, before, c.nodes[0].Topology().ClusterID)
		require.Equal(t, c.nodes[0].Topology().ClusterID, c.nodes[1].Topology().ClusterID)
	}
	require.EqualValues(t, 8, c.take(c.nodes[0], "key", 10).Remaining)
}

// TestALaggingSurvivorNeverLeads checks that the survivor with all acknowledged decisions leads, however often a
// survivor that lags repeats its recovery.
func TestALaggingSurvivorNeverLeads(t *testing.T) {
	c := newCluster(t, 3, nil)
	leader, at := c.leader()
	c.take(leader, "key", 10)
	c.agree()
	lag := (at + 1) % 3
	c.stop(lag)
	require.EqualValues(t, 8, c.take(leader, "key", 10).Remaining)
	c.stop((at + 2) % 3)
	c.stop(at)
	c.recoverWith(lag, at)
	for range 3 {
		require.ErrorContains(t, c.fails(lag, killedAtRename{vfs.Default, true}), "killed")
	}
	c.restart(lag)
	c.restart(at)
	leader, _ = c.leader()
	require.EqualValues(t, 7, c.take(leader, "key", 10).Remaining)
}

// TestWhatIsOverruledIsForgotten checks that decisions which were never acknowledged do not survive a recovery. A
// late survivor has them in its log, and loses them for good when it joins. The first heartbeat is long, so that the
// leader still leads when the others have stopped.
func TestWhatIsOverruledIsForgotten(t *testing.T) {
	net := &cutter{conns: map[net.Conn][2]int{}}
	c := newCluster(t, 3, func(i int, o *raftstore.Options) {
		o.Heartbeat = 5 * time.Second
		net.joins(i, o)
	})
	leader, at := c.leader()
	c.take(leader, "key", 10)
	require.NoError(t, leader.Snapshot())
	c.agree()
	term := leader.Topology().Term
	var others []int
	for i := range 3 {
		if i != at {
			c.stop(i)
			others = append(others, i)
		}
	}
	var alone sync.WaitGroup
	for i := range 20 { // each take becomes an entry, while the leader is alone
		time.Sleep(5 * time.Millisecond)
		alone.Go(func() {
			out := make([]engine.Decision, 1)
			assert.Error(t, leader.Decide([]engine.Op{{Key: fmt.Append(nil, "tail", i), Cost: 1,
				Limit: engine.Limit{Algorithm: engine.TokenBucket,
					Rate: engine.Rate{Units: 1, PerNs: int64(24 * time.Hour)}, Max: 1}}}, out))
		})
	}
	alone.Wait()
	c.stop(at)
	c.recoverWith(0, 1, 2)
	for i := range c.opts {
		c.opts[i].Heartbeat = busy
	}
	for _, i := range others {
		c.restart(i)
	}
	leader, _ = c.leader()
	require.Greater(t, leader.Topology().Term, term+1000, "the term must be higher than any earlier term")
	net.off(at, true)
	c.restart(at)
	tail := func() bool { _, ok := c.nodes[at].Inspect([]byte("tail0")); return ok }
	require.True(t, tail(), "the late survivor must start with its own log")
	net.off(at, false)
	require.Eventually(t, func() bool { return !tail() }, patience, time.Millisecond)
	c.agree()
	for i := range 3 {
		c.stop(i)
	}
	c.restart(at)
	require.False(t, tail())
	info, ok := c.nodes[at].Inspect([]byte("key"))
	require.True(t, ok)
	require.EqualValues(t, 1, info.Used)
	for _, i := range others {
		c.restart(i)
	}
	c.leader()
	c.agree()
}

// TestARecoveryIsCorrected checks that a second recovery file can correct a wrong address in the first.
func TestARecoveryIsCorrected(t *testing.T) {
	c := newCluster(t, 3, nil)
	leader, _ := c.leader()
	c.take(leader, "key", 10)
	c.agree()
	for i := range 3 {
		c.stop(i)
	}
	right := c.opts[1].RaftAddr
	c.opts[1].RaftAddr = "127.0.0.1:9"
	c.recoverWith(0, 1)
	c.opts[1].RaftAddr = right
	c.restart(0)
	require.ErrorContains(t, c.fails(1, nil), right, "the error must show the address that does not match")
	c.stop(0)
	c.recoverWith(0, 1)
	c.restart(0)
	c.restart(1)
	leader, _ = c.leader()
	require.EqualValues(t, 8, c.take(leader, "key", 10).Remaining)
	c.agree()
}

func TestABadRecoveryFileIsRefused(t *testing.T) {
	c := newCluster(t, 1, nil)
	leader, _ := c.leader()
	c.take(leader, "key", 10)
	c.stop(0)
	file := c.recoveryFile(0)
	for content, want := range map[string]string{
		`a,b`:           "want [",
		`[]`:            `does not name this node, "n0"`,
		`[{"id": "a"}]`: "needs an id and an addr",
		`[{"id": "stranger", "addr": "127.0.0.1:1"}]`:                           `does not name this node, "n0"`,
		`[{"id": "n0", "addr": "127.0.0.1:1"}]`:                                 "but its --raft-addr is HERE",
		`[{"id": "n0", "addr": "HERE"}, {"id": "n0", "addr": "127.0.0.1:1"}]`:   "is given twice",
		`[{"id": "n0", "addr": "HERE"}, {"id": "n1", "addr": "HERE"}]`:          "is given twice",
		`[{"id": "n0", "addr": "HERE"}, {"id": "no", "addr": "127.0.0.1:1"}]`:   `"no" is not a node of the cluster, its nodes are n0`,
		`[{"id": "n0", "addr": "HERE"}, {"id": "n0~a", "addr": "127.0.0.1:1"}]`: `"n0~a" is not a node`,
	} {
		here := strings.NewReplacer("HERE", c.opts[0].RaftAddr)
		require.NoError(t, os.WriteFile(file, []byte(here.Replace(content)), 0o600))
		err := c.fails(0, nil)
		require.ErrorContains(t, err, here.Replace(want))
		require.ErrorContains(t, err, "recover.json")
		require.FileExists(t, file, "a bad file must stay in place, so that it can be corrected")
	}
	require.NoError(t, os.Remove(file))
	c.restart(0)
	leader, _ = c.leader()
	require.EqualValues(t, 8, c.take(leader, "key", 10).Remaining, "a refused recovery must not change anything")
}

// TestNothingToRecover checks that a recovery file in the directory of a node without a cluster is an error.
func TestNothingToRecover(t *testing.T) {
	c := &cluster{t: t, fatal: make(chan error, 100)}
	c.opts = []raftstore.Options{c.options(0, "127.0.0.1:6390")}
	c.recoverWith(0)
	require.ErrorContains(t, c.fails(0, nil), "no state to recover")
}
