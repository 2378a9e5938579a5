package raftstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore"
)

func reserve(id string, n int64, ttl time.Duration, pairs ...string) engine.Op {
	op := check(n, pairs...)
	op.Code, op.ID, op.TTLNs = engine.OpReserve, []byte(id), int64(ttl)
	return op
}

func commit(id string, actual int64) engine.Op {
	return engine.Op{Code: engine.OpCommit, Key: []byte(id), Cost: actual}
}

// TestHoldsOutliveTheirLeader checks that a hold made through one leader is committed once through the next leader,
// however often the commit is repeated. Holds also survive a snapshot and a restart.
func TestHoldsOutliveTheirLeader(t *testing.T) {
	c := newCluster(t, 3, nil)
	leader, at := c.leader()
	follower, next := c.nodes[(at+1)%3], (at+2)%3
	c.decideOn(leader, setPolicy("org", 100), setPolicy("user", 50))
	held := c.decideOn(follower, reserve("r", 40, time.Hour, "org", "acme", "user", "7"))[0]
	require.EqualValues(t, 1, held.Allowed)

	leader = c.moveTo(next)
	require.Equal(t, held, c.decideOn(leader, reserve("r", 40, time.Hour, "org", "acme", "user", "7"))[0],
		"a repeated reserve must get the same answer")
	require.NoError(t, leader.Snapshot())
	settled := c.decideOn(follower, commit("r", 15))[0]
	require.Equal(t, engine.Decision{Allowed: 1, Remaining: 35}, settled)
	c.agree()

	leader = c.moveTo(at)
	require.Equal(t, settled, c.decideOn(leader, commit("r", 15))[0], "a repeated commit must get the same answer")
	require.Equal(t, engine.OtherTerms, c.decideOn(leader, commit("r", 16))[0].Status)
	require.Equal(t, engine.NoHold, c.decideOn(leader, commit("nobody", 1))[0].Status)
	c.decideOn(leader, reserve("s", 35, time.Hour, "org", "acme", "user", "7"))
	c.agree()
	c.stop(next)
	c.restart(next)
	c.agree()
	c.moveTo(next)
	require.EqualValues(
		t, 1, c.decideOn(c.nodes[next], engine.Op{Code: engine.OpCancel, Key: []byte("s"), Cost: 1})[0].Allowed)
	require.EqualValues(t, 85, c.decideOn(c.nodes[next], check(0, "org", "acme"))[0].Remaining)
	c.agree()
}

// TestAlternativesOutliveTheirLeader checks that every replica knows what each alternative of a hold has paid,
// through a new leader, a snapshot and a restart.
func TestAlternativesOutliveTheirLeader(t *testing.T) {
	c := newCluster(t, 3, nil)
	leader, at := c.leader()
	next := (at + 1) % 3
	c.decideOn(leader, setPolicy("allowance", 100), setPolicy("credits", 50))
	either := reserve("r", 120, time.Hour, "allowance", "acme", "credits", "acme")
	either.Else = 1<<1 | engine.Split
	held := c.decideOn(c.nodes[next], either)[0] // a follower forwards it
	require.Equal(t, "120 allowance 100 credits 20", held.Value)
	once := check(10, "allowance", "acme", "credits", "acme")
	once.Else, once.ID = 1<<1, []byte("id")
	once.Bind()
	checked := c.decideOn(leader, once)[0]
	require.Equal(t, "10 allowance 0 credits 10", checked.Value)
	c.agree()

	leader = c.moveTo(next)
	require.NoError(t, leader.Snapshot())
	c.stop(at)
	c.restart(at)
	leader = c.moveTo(at)
	require.Equal(t, held, c.decideOn(leader, either)[0])
	require.Equal(t, checked, c.decideOn(leader, once)[0])
	extend := engine.Op{Code: engine.OpExtend, Key: []byte("r"), Cost: 5, ID: engine.ExtensionID(1)}
	require.Equal(t, "125 allowance 100 credits 25", c.decideOn(leader, extend)[0].Value)
	require.EqualValues(t, 40, c.decideOn(leader, commit("r", 90))[0].Remaining)
	require.EqualValues(t, 10, c.decideOn(leader, check(0, "allowance", "acme"))[0].Remaining)
	c.agree()
}

// TestATestClockMovesByTheLog checks that the test clock moves only through log entries, and that concurrent moves
// add up.
func TestATestClockMovesByTheLog(t *testing.T) {
	c := newCluster(t, 3, func(_ int, o *raftstore.Options) { o.TestClock = true })
	leader, _ := c.leader()
	c.decideOn(leader, quota("key", 1))
	var before engine.Stamp
	require.Error(t, acrossAHandover(t, c, func(leader *raftstore.Node) error {
		if before = leader.Now(); leader.Advance(time.Hour) {
			return nil
		}
		return limiter.ErrUnknownOutcome
	}, func() {
		for _, n := range c.nodes {
			require.LessOrEqual(t, n.Now().NowNs, before.NowNs, "the clock must not move before the entry is committed")
		}
	}), "Advance must report failure when another leader took over")

	leader, _ = c.leader()
	require.Equal(t, before, leader.Now())
	moved := make(chan bool)
	const movers = 30
	for range movers {
		go func() { moved <- leader.Advance(time.Minute) }()
	}
	for range movers {
		require.True(t, <-moved)
	}
	require.Equal(t, movers*time.Minute, time.Duration(leader.Now().NowNs-before.NowNs))
	require.True(t, leader.Advance(1<<63-1))
	latest := leader.Now()
	require.True(t, leader.Advance(time.Hour))
	require.Equal(t, latest, leader.Now(), "the clock must stop at the latest time that package engine supports")
	c.agree()
}

// TestHoldsEndOnEveryNode checks that a hold ends at the same limiter time on every node.
func TestHoldsEndOnEveryNode(t *testing.T) {
	c := newCluster(t, 3, func(_ int, o *raftstore.Options) { o.TestClock = true })
	leader, _ := c.leader()
	c.decideOn(leader, setPolicy("org", 100))
	for i := range 50 {
		c.decideOn(c.nodes[i%3],
			reserve(fmt.Sprint("r", i), 2, time.Second+time.Duration(i)*time.Millisecond, "org", "acme"))
	}
	require.Zero(t, c.decideOn(leader, check(1, "org", "acme"))[0].Allowed)
	require.True(t, leader.Advance(1025*time.Millisecond))
	d := c.decideOn(leader, check(1, "org", "acme"))[0]
	require.EqualValues(t, 1, d.Allowed)
	require.EqualValues(t, 51, d.Remaining, "26 holds must have ended")
	c.agree()
	require.Equal(t, engine.Decision{Allowed: 1, Remaining: 44}, c.decideOn(leader, commit("r0", 7))[0],
		"a late commit must still be charged")
	require.True(t, leader.Advance(time.Minute))
	require.EqualValues(t, 92, c.decideOn(leader, check(0, "org", "acme"))[0].Remaining)
	c.agree()
}
