package consensus_test

import (
	"errors"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore/internal/consensus"
)

// answered is a request that the library has answered with an error.
type answered struct{ err error }

func (a answered) Error() error { return a.err }

// TestOutcomesOfChanges checks what a caller is told of a change of the members that the library did not make. The
// texts are those of hashicorp/raft, which has no values for them.
func TestOutcomesOfChanges(t *testing.T) {
	c := consensus.Raft{Ended: make(chan struct{})}
	for said, want := range map[string]error{
		"configuration changed since 2535 (latest is 2544)": limiter.ErrTryAgain,
		"leadership transfer timeout":                       limiter.ErrUnknownOutcome,
	} {
		require.ErrorIs(t, c.Change(answered{errors.New(said)}), want, said)
	}
	require.ErrorIs(t, c.Change(answered{raft.ErrLeadershipLost}), limiter.ErrUnknownOutcome)
	require.EqualError(t, c.Change(answered{errors.New("no such server")}), "no such server")
	require.NoError(t, c.Change(answered{}))
}
