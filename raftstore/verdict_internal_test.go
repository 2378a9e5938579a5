package raftstore

import (
	"errors"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore/internal/consensus"
	"github.com/weir-project/weir/raftstore/internal/pipeline"
	"github.com/weir-project/weir/raftstore/internal/queue"
	"github.com/weir-project/weir/raftstore/wire"
)

// over is a future of the Raft library that has completed.
type over struct {
	err    error
	answer any
}

func (o over) Error() error  { return o.err }
func (o over) Response() any { return o.answer }
func (o over) Index() uint64 { return 0 }

// TestErrorsOfTheRaftLibrary checks that an error of the Raft library lets a caller try again only if no log has the
// entry or the change.
func TestErrorsOfTheRaftLibrary(t *testing.T) {
	other := errors.New("other")
	c := &consensus.Raft{Ended: make(chan struct{})}
	for said, want := range map[error]struct{ entry, change error }{
		raft.ErrNotLeader:                    {limiter.ErrTryAgain, limiter.ErrTryAgain},
		raft.ErrEnqueueTimeout:               {limiter.ErrTryAgain, limiter.ErrTryAgain},
		raft.ErrLeadershipTransferInProgress: {limiter.ErrTryAgain, limiter.ErrTryAgain},
		raft.ErrLeadershipLost:               {limiter.ErrUnknownOutcome, limiter.ErrUnknownOutcome},
		raft.ErrRaftShutdown:                 {limiter.ErrUnknownOutcome, limiter.ErrUnknownOutcome},
		other:                                {limiter.ErrUnknownOutcome, other},
		nil:                                  {nil, nil},
	} {
		require.Equal(t, want.entry, consensus.Outcome(said), "an entry: %v", said)
		require.Equal(t, want.change, c.Change(over{err: said}), "a change: %v", said)
	}
}

// TestEachCallerGetsTheOutcomeOfItsEntry checks that each caller gets the outcome of its entry, and that the log has
// the library's error.
func TestEachCallerGetsTheOutcomeOfItsEntry(t *testing.T) {
	void := errors.New("void")
	for name, c := range map[string]struct {
		future over
		want   error
		logs   bool
	}{
		"applied":             {over{}, nil, false},
		"void":                {over{answer: void}, void, false},
		"refused":             {over{err: raft.ErrNotLeader, answer: void}, limiter.ErrTryAgain, true},
		"perhaps in some log": {over{err: raft.ErrLeadershipLost}, limiter.ErrUnknownOutcome, true},
	} {
		t.Run(name, func(t *testing.T) {
			n := newBareNode(t)
			b := queue.NewBatch(wire.Decide, 1)
			n.pipeline.Proposals <- pipeline.Proposal{Batch: b, Future: c.future}
			close(n.pipeline.Proposals)
			n.pipeline.CompleteProposals()
			<-b.Done
			require.Equal(t, c.want, b.Err)
			if c.logs {
				require.Contains(t, n.said.String(), c.future.err.Error())
			} else {
				require.NotContains(t, n.said.String(), "no answer")
			}
		})
	}
}
