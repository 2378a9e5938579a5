package raftstore

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/faults"
	"github.com/weir-project/weir/raftstore/internal/queue"
)

func TestOnlyARowOfDenialsIsSure(t *testing.T) {
	var d denials
	for range surely {
		require.False(t, d.sure())
		d.saw(true)
	}
	require.True(t, d.sure())
	d.saw(true)
	d.saw(false)
	require.False(t, d.sure(), "one that was admitted ends the row")
}

// TestAMajorityIsAskedEarly, while this node looks, where the call will surely be denied;
// and else only when it was.
func TestAMajorityIsAskedEarly(t *testing.T) {
	n := newBareNode(t)
	n.configure(t, "a")
	r := n.leads(t)
	require.NoError(t, n.group.raft.Barrier(n.host.electionTimeout()).Error())
	n.group.machine.PassTo(n.group.raft.CommitIndex())
	n.group.machine.Table.Load().Decide(n.group.leadership.stamp(r), []engine.Op{bucket, bucket}, make([]engine.Decision, 2))
	var early bool
	n.host.options.Failpoint = func(at faults.Point) {
		early = at == faults.DuringDenial && n.group.confirms.Quick != nil // the only voter has confirmed a round
	}
	for i := range surely + 2 {
		n.group.confirms.Quick = nil
		out := make([]engine.Decision, 1)
		require.NoError(t, n.group.pipeline.decideOrDeny([]engine.Op{bucket}, out, false))
		require.Zero(t, out[0].Allowed)
		require.Equal(t, i >= surely, early, "call %d", i)
	}
}

// TestAnEntryTakesSoManyOperations, and one of any length.
func TestAnEntryTakesSoManyOperations(t *testing.T) {
	small := make([]engine.Op, queue.MaxEntryOps+1)
	for i := range small {
		small[i] = bucket
	}
	require.Equal(t, queue.MaxEntryOps, fitting(small))
	require.Equal(t, queue.MaxEntryOps, fitting(small[:queue.MaxEntryOps]))
	require.Equal(t, queue.MaxEntryOps-1, fitting(small[:queue.MaxEntryOps-1]))
	large := bucket
	large.Key = make([]byte, queue.MaxEntryBytes+1)
	require.Equal(t, 1, fitting([]engine.Op{large, bucket}))
	require.Equal(t, 1, fitting([]engine.Op{bucket, large}))
}
