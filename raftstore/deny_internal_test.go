package raftstore

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/faults"
	"github.com/weir-project/weir/raftstore/internal/pipeline"
	"github.com/weir-project/weir/raftstore/internal/timers"
)

// TestAMajorityIsAskedEarly checks that the majority is asked before the preview only if the call will almost
// certainly be denied. Otherwise it is asked after a denial.
func TestAMajorityIsAskedEarly(t *testing.T) {
	n := newBareNode(t)
	n.configure(t, "a")
	r := n.leads(t)
	require.NoError(t, n.raft.Barrier(timers.ElectionTimeout(n.own.Options.Heartbeat)).Error())
	n.fsm.MarkApplied(n.raft.CommitIndex())
	n.fsm.Table.Load().Decide(n.leadership.Stamp(r), []engine.Op{bucket, bucket},
		make([]engine.Decision, 2))
	var early bool
	n.own.Options.Failpoint = func(at faults.Point) {
		// The only voter has confirmed a quorum round.
		early = at == faults.DuringDenial && n.confirms.Quick != nil
	}
	for i := range pipeline.EarlyCheckAfter + 2 {
		n.confirms.Quick = nil
		out := make([]engine.Decision, 1)
		require.NoError(t, n.pipeline.DecideOrDeny([]engine.Op{bucket}, out, false))
		require.Zero(t, out[0].Allowed)
		require.Equal(t, i >= pipeline.EarlyCheckAfter, early, "call %d", i)
	}
}
