package raftstore_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore"
	"github.com/weir-project/weir/raftstore/wire"
)

// onText returns an operation on strings, which weir 0.1.0 does not know.
func onText(id engine.ScriptID, key string, values ...string) engine.Op {
	call := &engine.Script{ID: id}
	for i, v := range values {
		call.Values[i] = []byte(v)
	}
	return engine.Op{Code: engine.OpScript, Key: []byte(key), Cost: 1, Script: call}
}

// TestTextsOnEveryNode checks that every node reads a string byte for byte after another node set or swapped it. The
// string survives a snapshot, a restart and the loss of the leader.
func TestTextsOnEveryNode(t *testing.T) {
	c := newCluster(t, 3, nil)
	c.awaitFormat(wire.Version)
	_, at := c.leader()
	follower := c.nodes[(at+1)%3]
	state := strings.Repeat("\x00\xff state", 100)
	require.EqualValues(t, 1, c.decideOn(follower, onText(engine.TextSet, "k", state))[0].ScriptAnswer()[3])
	read := func(when, want string) {
		for i, n := range c.nodes {
			out := c.decideOn(n, onText(engine.CountGet, "k"), onText(engine.CountGet, "none"),
				onText(engine.CountGet, "k"))
			require.Equal(t, []string{want, "", want}, []string{out[0].Value, out[1].Value, out[2].Value},
				"%s: node %d", when, i)
		}
	}
	read("at once", state)
	last := (at + 2) % 3
	require.NoError(t, c.nodes[last].Snapshot())
	c.stop(last)
	c.restart(last)
	c.agree()
	read("after a restart from an image", state)
	for i, n := range c.nodes {
		out := c.decideOn(n, onText(engine.TextSwap, "k", state, state+"!"),
			onText(engine.TextSwap, "k", state, "late"))
		require.Equal(t, []int64{1, 0}, []int64{out[0].ScriptAnswer()[0], out[1].ScriptAnswer()[0]}, "swap %d", i)
		state += "!"
	}
	read("after swaps", state)
	c.stop(at)
	c.leader()
	c.restart(at)
	c.agree()
	read("after the leader was lost", state)
}

// awaitFormat waits until every node knows that all nodes read this wire format.
func (c *cluster) awaitFormat(format byte) {
	for _, n := range c.nodes {
		require.Eventually(c.t, func() bool { return n.AgreeOnFormat() >= int32(format) }, patience,
			10*time.Millisecond)
	}
}

// TestTextsWaitForEveryMember checks that nodes refuse byte strings while a member does not support them. Numbers and
// reads still succeed.
func TestTextsWaitForEveryMember(t *testing.T) {
	c := newCluster(t, 3, func(i int, o *raftstore.Options) {
		if i == 2 {
			o.Format = wire.Oldest
		}
	})
	c.leader()
	count := onText(engine.CountSet, "k")
	count.Script.Args[0] = 7
	for i, n := range c.nodes[:2] {
		require.ErrorIs(t, c.refusal(n.Decide, onText(engine.TextSet, "k", "v")), limiter.ErrOldMember, "node %d", i)
		out := c.decideOn(n, count, onText(engine.CountGet, "k"))
		require.EqualValues(t, 7, out[1].ScriptAnswer()[0])
	}
	c.agree()
}

// TestLongAnswersComeThroughFollowers checks that a follower returns many strings of the greatest length, which do
// not fit one message.
func TestLongAnswersComeThroughFollowers(t *testing.T) {
	const valueBytes = 256 << 10
	c := newCluster(t, 3,
		func(_ int, o *raftstore.Options) {
			o.MaxValueBytes, o.MaxDecisionAge = valueBytes, patience
		})
	c.awaitFormat(wire.Version)
	_, at := c.leader()
	follower := c.nodes[(at+1)%3]
	state := strings.Repeat("s", valueBytes)
	c.decideOn(follower, onText(engine.TextSet, "k", state))
	done := make(chan error, 8)
	for range cap(done) {
		go func() {
			ops := make([]engine.Op, 8)
			for i := range ops {
				ops[i] = onText(engine.CountGet, "k")
			}
			out := make([]engine.Decision, len(ops))
			err := follower.Decide(ops, out)
			for end := time.Now().Add(patience); err != nil && time.Now().Before(end); { // an election was under way
				time.Sleep(10 * time.Millisecond)
				err = follower.Decide(ops, out)
			}
			for i := range out {
				if err == nil && out[i].Value != state {
					err = limiter.ErrUnknownOutcome
				}
			}
			done <- err
		}()
	}
	for range cap(done) {
		require.NoError(t, <-done)
	}
}
