package raftstore_test

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/weir-project/weir/internal/logtest"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore"
	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/wire"
)

// ofTheNewest returns an operation that only the newest wire format can encode: a byte string.
func ofTheNewest(name string) engine.Op { return onText(engine.TextSet, name, "state") }

// TestFormatsAreAgreedOn checks upgrades and downgrades of one member. While the member runs an older version, every
// node refuses operations that this version cannot read. After the upgrade, the member can be downgraded until such an
// operation is logged. From the upgrade on, new nodes of the older version are refused. The older version stops at an
// entry that it cannot read.
func TestFormatsAreAgreedOn(t *testing.T) {
	const older = wire.Oldest
	c := newCluster(t, 3, func(i int, o *raftstore.Options) {
		if i == 0 {
			o.Format = older
		}
	})
	c.leader()
	c.moveTo(1)
	for _, n := range c.nodes {
		for _, other := range []string{"n0", "n1", "n2"} {
			require.Eventually(t, func() bool { return n == c.nodes[other[1]-'0'] || n.Heard(other) }, patience,
				10*time.Millisecond)
		}
		require.EqualValues(t, older, n.AgreeOnFormat())
		require.ErrorIs(t, c.refusal(n.Decide, quota("key", 10), ofTheNewest("p")), limiter.ErrOldMember)
		require.ErrorIs(t, c.refusal(n.DecideAtomic, ofTheNewest("p")), limiter.ErrOldMember)
	}
	requireShown(t, c.nodes[1], older, older, wire.Version, wire.Version)
	require.EqualValues(t, 1, c.decideOn(c.nodes[1], blockOf("blocked"))[0].Allowed, "a block needs no new format")
	require.Positive(t, c.decideOn(c.nodes[1], aboveTheLimit("blocked"))[0].RetryMs, "by the old rules")
	require.EqualValues(t, 9, c.decideOn(c.nodes[2], quota("key", 10))[0].Remaining,
		"refused operations must not count")
	c.agree()

	reopen := func(format byte) {
		c.stop(0)
		c.opts[0].Format = format
		c.restart(0)
	}
	reopen(wire.Version)
	leader, _ := c.leader()
	require.Eventually(t, func() bool { return leader.Format() == wire.Version }, patience, 10*time.Millisecond)
	requireShown(t, leader, wire.Version, wire.Version, wire.Version, wire.Version)
	c.take(leader, "other", 100)
	c.agree()
	said := &logtest.Buffer{}
	_, err := c.grow(3, func(o *raftstore.Options) {
		o.Format, o.Logger = older, slog.New(slog.NewTextHandler(said, nil))
	})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return said.Has(failure.ErrOlder.Error()) }, patience, 10*time.Millisecond)
	c.stop(3)
	c.opts[3].Format = wire.Version
	c.restart(3)
	c.sees(leader, 4, 4)
	reopen(older)
	leader = c.moveTo(1)
	c.take(leader, "other", 100)
	c.agree()

	reopen(wire.Version)
	leader = c.moveTo(1)
	require.Eventually(t, func() bool { return leader.AgreeOnFormat() == wire.Version }, patience, 10*time.Millisecond)
	c.stop(0)
	require.Equal(t, engine.OK, c.decideOn(leader, ofTheNewest("p"))[0].Status)
	require.Equal(t, "state", c.decideOn(leader, onText(engine.CountGet, "p"))[0].Value)
	c.opts[0].Format = older
	c.restart(0)
	select {
	case err := <-c.fatal:
		require.ErrorIs(t, err, raftstore.ErrNewer)
		op := ofTheNewest("p")
		require.ErrorContains(t, err, fmt.Sprintf("entry format %d, this one reads %d", wire.FormatOf(&op), older))
	case <-time.After(patience):
		t.Fatal("the older version must stop at an entry that it cannot read")
	}
}

// TestARestartedNodeKnowsTheForm checks that a node which has just restarted does not say that members are old when its
// log has the newest form already.
func TestARestartedNodeKnowsTheForm(t *testing.T) {
	c := newCluster(t, 3, nil)
	leader, at := c.leader()
	c.decideOn(leader, ofTheNewest("p"))
	follower := (at + 1) % 3
	for range 5 {
		c.stop(follower)
		c.restart(follower)
		out := make([]engine.Decision, 1)
		require.Eventually(t, func() bool {
			err := c.nodes[follower].Decide([]engine.Op{ofTheNewest("p")}, out)
			require.NotErrorIs(t, err, limiter.ErrOldMember)
			return err == nil
		}, patience, time.Millisecond)
	}
}

func blockOf(key string) engine.Op {
	return engine.Op{Code: engine.OpBlock, Key: []byte(key), Cost: 1, TTLNs: 60e9}
}

// aboveTheLimit returns an operation that never fits.
func aboveTheLimit(key string) engine.Op {
	op := quota(key, 10)
	op.Cost = 11
	return op
}

// newOlderCluster returns a cluster of nodes that read only the oldest format.
func newOlderCluster(t *testing.T) *cluster {
	return newCluster(t, 3, func(_ int, o *raftstore.Options) { o.Format = wire.Oldest })
}

// TestANewClusterHasTheNewestRules checks that a cluster begins with the newest format that its members read.
func TestANewClusterHasTheNewestRules(t *testing.T) {
	c := newCluster(t, 1, nil)
	leader, _ := c.leader()
	require.EqualValues(t, wire.Version, leader.Written())
}

// TestABlockBringsTheNewRules checks that the first block after every member is upgraded makes the log decide by the
// rules of the newest format.
func TestABlockBringsTheNewRules(t *testing.T) {
	c := newOlderCluster(t)
	c.leader()
	for i := range c.nodes {
		c.stop(i)
		c.opts[i].Format = wire.Version
		c.restart(i)
		c.leader()
	}
	leader, _ := c.leader()
	require.Eventually(t, func() bool { return leader.AgreeOnFormat() == wire.Version }, patience, 10*time.Millisecond)
	c.take(leader, "other", 1)
	require.EqualValues(t, wire.Oldest, leader.Written())
	require.EqualValues(t, 1, c.decideOn(leader, blockOf("blocked"))[0].Allowed)
	require.EqualValues(t, wire.Groups, leader.Written())
	for _, n := range c.nodes {
		require.EqualValues(t, -1, c.decideOn(n, aboveTheLimit("blocked"))[0].RetryMs)
	}
	c.agree()
}

// requireShown waits until a node reports the wire format that it writes and those that its members read.
func requireShown(t *testing.T, n *raftstore.Node, writes byte, reads ...byte) {
	t.Helper()
	require.Eventually(t, func() bool {
		shown := n.Topology()
		for i, m := range shown.Nodes {
			if m.Format != reads[i] {
				return false
			}
		}
		return shown.Format == writes && len(shown.Nodes) == len(reads)
	}, patience, 10*time.Millisecond)
}

// TestWhatTheLogHasMayBeWrittenAgain checks that restarted nodes write the newest format of their log again, without
// hearing from a dead member. Every member must be able to read that format already. Before the log has the newest
// format, the nodes write an old one.
func TestWhatTheLogHasMayBeWrittenAgain(t *testing.T) {
	c := newOlderCluster(t)
	leader, _ := c.leader()
	c.stop(2)
	for i := range 2 {
		c.stop(i)
		c.opts[i].Format = wire.Version
		c.restart(i)
	}
	c.leader()
	for i, n := range c.nodes[:2] {
		require.Eventually(t, func() bool { return n.Heard(c.opts[1-i].NodeID) }, patience, 10*time.Millisecond)
		require.EqualValues(t, wire.Oldest, n.AgreeOnFormat(), "no node has heard from n2")
	}
	c.opts[2].Format = wire.Version
	c.restart(2)
	leader, _ = c.leader()
	require.Eventually(t, func() bool { return leader.AgreeOnFormat() == wire.Version }, patience, 10*time.Millisecond)
	require.Equal(t, engine.OK, c.decideOn(leader, ofTheNewest("p"))[0].Status)
	c.agree()

	c.stop(2)
	for i := range 2 {
		require.NoError(t, c.nodes[i].Snapshot())
		c.stop(i)
		c.restart(i)
	}
	leader, _ = c.leader()
	require.False(t, leader.Heard("n2"))
	require.Equal(t, engine.OK, c.decideOn(leader, ofTheNewest("q"))[0].Status)
	c.agree()
}
