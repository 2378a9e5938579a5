package raftstore_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/raftstore"
)

// TestWhatNoNodeCouldReadIsNotLogged: an entry that every node stops at would end
// the cluster.
func TestWhatNoNodeCouldReadIsNotLogged(t *testing.T) {
	c := newCluster(t, 3, nil)
	leader, at := c.leader()
	out := make([]engine.Decision, 2)
	for name, spoil := range map[string]func(op *engine.Op){
		"no key":         func(op *engine.Op) { op.Key = nil },
		"a long key":     func(op *engine.Op) { op.Key = make([]byte, engine.MaxKeyLen+1) },
		"negative cost":  func(op *engine.Op) { op.Cost = -1 },
		"no window":      func(op *engine.Op) { op.Limit = engine.Limit{Algorithm: engine.SlidingLog, Max: 1} },
		"no such code":   func(op *engine.Op) { op.Code = 200 },
		"no increment":   func(op *engine.Op) { op.Code = engine.OpIncr },
		"no calendar":    func(op *engine.Op) { op.Limit.Mode = engine.Month },
		"an endless log": func(op *engine.Op) { op.Limit = engine.Limit{Algorithm: engine.Strike, WindowNs: 1, Max: 1} },
	} {
		op := quota("key", 10)
		spoil(&op)
		for _, n := range []*raftstore.Node{leader, c.nodes[(at+1)%3]} {
			require.ErrorIs(t, n.Decide([]engine.Op{op}, out), raftstore.ErrUnsound, name)
			require.ErrorIs(t, n.DecideAtomic([]engine.Op{quota("key", 10), op}, out), raftstore.ErrUnsound, name)
		}
	}
	require.EqualValues(t, 9, c.decideOn(leader, quota("key", 10))[0].Remaining, "nothing was counted")
	c.agree()
}
