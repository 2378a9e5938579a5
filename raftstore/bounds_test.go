package raftstore_test

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/raftstore"
	"github.com/weir-project/weir/raftstore/internal/failure"
)

// TestWhatNoNodeCouldReadIsNotLogged checks that every node refuses invalid operations before they reach the log.
// Each node that applied such an entry would stop.
func TestWhatNoNodeCouldReadIsNotLogged(t *testing.T) {
	c := newCluster(t, 3, nil)
	leader, at := c.leader()
	out := make([]engine.Decision, 2)
	for name, spoil := range map[string]func(op *engine.Op){
		"no key":        func(op *engine.Op) { op.Key = nil },
		"a long key":    func(op *engine.Op) { op.Key = make([]byte, engine.MaxKeyLen+1) },
		"negative cost": func(op *engine.Op) { op.Cost = -1 },
		"no window":     func(op *engine.Op) { op.Limit = engine.Limit{Algorithm: engine.SlidingLog, Max: 1} },
		"no such code":  func(op *engine.Op) { op.Code = 200 },
		"no increment":  func(op *engine.Op) { op.Code = engine.OpIncr },
		"no calendar":   func(op *engine.Op) { op.Limit.Mode = engine.Month },
		"an endless log": func(op *engine.Op) {
			op.Limit = engine.Limit{Algorithm: engine.Strike,
				WindowNs: 1, Max: 1}
		},
	} {
		op := quota("key", 10)
		spoil(&op)
		for _, n := range []*raftstore.Node{leader, c.nodes[(at+1)%3]} {
			require.ErrorIs(t, n.Decide([]engine.Op{op}, out), failure.ErrInvalidOp, name)
			require.ErrorIs(t, n.DecideAtomic([]engine.Op{quota("key", 10), op}, out), failure.ErrInvalidOp, name)
		}
	}
	require.EqualValues(t, 9, c.decideOn(leader, quota("key", 10))[0].Remaining, "a refused operation must not count")
	c.agree()
}

// TestBoundsMayDiffer checks that the leader decides by its own bound what is evicted. The other nodes follow,
// whatever their bounds are, and log a warning.
func TestBoundsMayDiffer(t *testing.T) {
	const small, large = 3 << 19, 8 << 20
	var warnings [3]counter
	c := newCluster(t, 3, func(i int, o *raftstore.Options) {
		warnings[i].text = []byte("have different memory bounds")
		o.Logger = slog.New(slog.NewTextHandler(&warnings[i], nil))
		o.Table.MaxMemoryBytes, o.Table.Shards = large, 4
		if i == 0 {
			o.Table.MaxMemoryBytes = small
		}
	})
	leader := c.moveTo(1)
	for i := range 45 { // a little more than the small bound, because more keys make the comparison of the nodes slower
		ops := make([]engine.Op, 1000)
		for k := range ops {
			ops[k] = engine.Op{Key: fmt.Append(nil, i, "/", k), Cost: 1, Limit: engine.Limit{
				Algorithm: engine.TokenBucket, Rate: engine.Rate{Units: 1, PerNs: int64(time.Hour)}, Max: 10,
			}}
		}
		c.decideOn(leader, ops...)
	}
	c.agree()
	held := c.nodes[0].Stats().MemoryBytes
	require.Greater(t, held, int64(small), "a follower must hold what the leader admits, beyond its own bound")

	// Without Confirm, as in moveTo, because its batch evicts as a request does.
	require.Eventually(t, func() bool { return leader.TransferLeadership(c.opts[0].NodeID) == nil }, patience,
		10*time.Millisecond)
	require.Eventually(t, func() bool { return c.nodes[0].Stats().MemoryBytes <= small },
		patience, 10*time.Millisecond, "the new leader must evict without a request")
	require.Positive(t, c.nodes[0].Stats().Evicted)
	require.EqualValues(t, 1, c.decideOn(c.nodes[0], quota("new", 5))[0].Allowed)
	c.agree()
	require.Eventually(t, func() bool { return c.nodes[1].Len(0) == c.nodes[0].Len(0) }, patience, 10*time.Millisecond,
		"the nodes must hold as many keys once the leader evicts no more")
	require.Empty(t, c.fatal)
	require.Eventually(t, func() bool {
		return warnings[0].n.Load() == 2 && warnings[1].n.Load() == 1 && warnings[2].n.Load() == 1
	}, patience, 10*time.Millisecond, "each node must warn once about each other bound")
}
