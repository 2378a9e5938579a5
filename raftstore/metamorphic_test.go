package raftstore_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore"
)

// fixedWall is a machine whose wall clock stands still.
type fixedWall struct{ persistence.Source }

func (fixedWall) WallNs() int64 { return int64(1e18) }

// step lets some time pass, then decides some operations.
type step struct {
	wait   time.Duration
	ops    []engine.Op
	atomic bool
}

// makeSteps draws the steps of a run from a seed.
func makeSteps(seed uint64, n int) []step {
	r := rand.New(rand.NewPCG(seed, 1))
	steps := make([]step, n)
	for i := range steps {
		steps[i] = step{wait: time.Duration(r.IntN(3000)) * time.Millisecond, atomic: r.IntN(4) == 0}
		for range 1 + r.IntN(40) {
			steps[i].ops = append(steps[i].ops, randomOp(r))
		}
	}
	return steps
}

func randomOp(r *rand.Rand) engine.Op {
	limits := []engine.Limit{
		{Algorithm: engine.TokenBucket, Rate: engine.Rate{Units: 1, PerNs: 1e9}, Max: 5},
		{Algorithm: engine.LeakyBucket, Rate: engine.Rate{Units: 3, PerNs: 1e9}, Max: 4},
		{Algorithm: engine.SlidingLog, WindowNs: 5e9, Max: 6},
		{Algorithm: engine.SlidingCounter, WindowNs: 4e9, Max: 7},
		{Algorithm: engine.FixedWindow, Mode: engine.FromFirst, WindowNs: 6e9, Max: 5},
		{Algorithm: engine.Concurrency, Max: 3},
		{Algorithm: engine.Strike, WindowNs: 9e9, Max: 4,
			Steps: engine.MakeSteps([]engine.Step{{Threshold: 2, PenaltyNs: 1e9}, {Threshold: 4, PenaltyNs: 5e9}})},
	}
	which := r.IntN(len(limits))
	bar := []string{"", "", "r|"}[r.IntN(3)] // the prefix that a block everywhere covers
	op := engine.Op{Key: fmt.Appendf(nil, "%s%d:%d", bar, which, r.IntN(6)), Limit: limits[which],
		Cost: int64(r.IntN(3)), Text: []byte("h"), TTLNs: 4e9}
	if op.Limit.Algorithm != engine.Concurrency {
		op.Text, op.TTLNs = nil, 0
	}
	if r.IntN(8) == 0 {
		op.ID = fmt.Appendf(nil, "id%d", r.IntN(20))
	}
	switch r.IntN(20) {
	case 0:
		op = engine.Op{Code: engine.OpReset, Key: op.Key, Cost: 1}
	case 1:
		op = engine.Op{Code: []engine.OpCode{engine.OpBlock, engine.OpBlockEverywhere, engine.OpUnblock}[r.IntN(3)],
			Key: op.Key, Cost: 1, TTLNs: 3e9}
	case 2:
		op = engine.Op{Code: engine.OpRefund, Key: op.Key, Cost: 1}
	case 3, 4, 5:
		call := engine.Script{ID: engine.RedisRateAllowN,
			Args: [engine.MaxScriptArgs]float64{4, 3, 0.7, float64(r.IntN(3))}}
		op = engine.Op{Code: engine.OpScript, Key: fmt.Appendf(nil, "script:%d", r.IntN(3)), Cost: 1, Script: &call}
	case 6, 7, 8:
		op = engine.Op{Code: engine.OpScript, Key: fmt.Appendf(nil, "text:%d", r.IntN(3)), Cost: 1, Script: textCall(r)}
	}
	return op
}

// textCall draws a call of a string script.
func textCall(r *rand.Rand) *engine.Script {
	values := []string{"7", "", "state", strings.Repeat("\x00state", 400)}
	call := &engine.Script{ID: []engine.ScriptID{
		engine.CountGet, engine.TextSet, engine.TextSwap, engine.TextTake, engine.TextAppend, engine.TextTouch,
	}[r.IntN(6)]}
	for i := range call.ID.TextsOf() {
		call.Values[i] = []byte(values[r.IntN(len(values))])
	}
	call.Args[0], call.Args[1] = float64(engine.TextGetOld|r.IntN(16)), float64(r.IntN(3000))
	return call
}

// expected returns the answers of a single table.
func expected(steps []step) [][]engine.Decision {
	table := engine.NewTable(engine.Options{})
	at := engine.Stamp{NowNs: fixedWall{}.WallNs()}
	var all [][]engine.Decision
	for _, s := range steps {
		at.NowNs += int64(s.wait)
		out := make([]engine.Decision, len(s.ops))
		table.DecideAtomic(at, s.ops, out)
		all = append(all, out)
	}
	return all
}

// TestEveryPathGivesTheSameAnswer checks that the same operations have the same answers through a single table, one
// node, and three nodes that are asked in turn. Meanwhile leaders change, nodes restart, snapshots are taken, and
// followers catch up by log or by image. All nodes end in the same state.
func TestEveryPathGivesTheSameAnswer(t *testing.T) {
	steps := makeSteps(1, 150)
	want := expected(steps)
	for _, road := range []struct {
		name    string
		nodes   int
		disturb func(c *cluster, i int)
	}{
		{"one node", 1, func(*cluster, int) {}},
		{"one node that restarts", 1, func(c *cluster, i int) {
			if i%40 == 20 {
				c.stop(0)
				c.restart(0)
			}
			if i%30 == 10 {
				require.NoError(t, c.nodes[0].Snapshot())
			}
		}},
		{"three nodes", 3, func(*cluster, int) {}},
		{"three nodes in trouble", 3, trouble},
	} {
		t.Run(road.name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, road.nodes, func(_ int, o *raftstore.Options) {
				o.TestClock, o.Source, o.SnapshotBytes = true, fixedWall{persistence.SystemSource()}, 16<<10
				// The long heartbeat and decision age prevent unwanted elections and unknown outcomes.
				o.Heartbeat, o.MaxDecisionAge = 2*time.Second, patience
			})
			now := time.Duration(fixedWall{}.WallNs())
			for i, s := range steps {
				road.disturb(c, i)
				now += s.wait
				c.advanceTo(now)
				require.Equal(t, want[i], c.decide(c.nodes[i%road.nodes], s), "step %d", i)
			}
			c.leader()
			c.agree()
		})
	}
}

// advanceTo moves the test clock to a time through the log. A failed attempt may still have moved the clock, so each
// attempt only moves it by the rest.
func (c *cluster) advanceTo(now time.Duration) {
	c.t.Helper()
	c.order(func(leader *raftstore.Node) error {
		missing := now - time.Duration(leader.Now().NowNs)
		require.GreaterOrEqual(c.t, missing, time.Duration(0), "the clock is ahead")
		if !leader.Advance(missing) {
			return limiter.ErrUnknownOutcome
		}
		return nil
	})
}

// trouble disturbs a cluster of three between steps.
func trouble(c *cluster, i int) {
	switch i % 25 {
	case 5:
		_, at := c.leader()
		c.moveTo((at + 1) % 3)
	case 10, 14:
		_, at := c.leader()
		c.stop(at)
		c.leader()
		c.restart(at)
	case 20:
		leader, at := c.leader()
		behind := (at + 1) % 3
		c.stop(behind)
		for range 200 {
			require.NoError(c.t, leader.Confirm())
		}
		require.NoError(c.t, leader.Snapshot())
		c.restart(behind)
	}
}

// decide decides a step on a node, and repeats it until it has certainly been decided once.
func (c *cluster) decide(n *raftstore.Node, s step) []engine.Decision {
	out := make([]engine.Decision, len(s.ops))
	require.Eventually(c.t, func() bool {
		err := n.DecideAtomic(s.ops, out)
		if err != nil {
			require.NotErrorIs(c.t, err, limiter.ErrUnknownOutcome)
		}
		return err == nil
	}, patience, 10*time.Millisecond)
	return out
}
