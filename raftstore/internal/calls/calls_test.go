package calls

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore/internal/failure"
)

// TestOutcomesBetweenNodes checks the byte of each outcome, which never changes, and what the caller reads from it.
func TestOutcomesBetweenNodes(t *testing.T) {
	other := errors.New("the disk is full")
	for said, want := range map[error]struct {
		status byte
		read   error
	}{
		nil:                 {0, nil},
		limiter.ErrTryAgain: {1, limiter.ErrTryAgain},
		fmt.Errorf("why: %w", limiter.ErrTryAgain): {1, limiter.ErrTryAgain},
		limiter.ErrNotLeader:                       {2, limiter.ErrTryAgain},
		limiter.ErrClusterDown:                     {2, limiter.ErrTryAgain},
		limiter.ErrOverloaded:                      {3, limiter.ErrOverloaded},
		limiter.ErrUnknownOutcome:                  {4, limiter.ErrUnknownOutcome},
		other:                                      {5, other},
		limiter.ErrCrossSlot:                       {5, errors.New(limiter.ErrCrossSlot.Error())},
		failure.ErrLostState:                       {6, failure.ErrLostState},
		limiter.ErrOldMember:                       {7, limiter.ErrOldMember},
		failure.ErrRemovedID:                       {8, failure.ErrRemovedID},
		limiter.ErrTooLarge:                        {9, limiter.ErrTooLarge},
	} {
		status, payload := Reply([]byte("answer"), said)
		require.Equal(t, want.status, status, "%v", said)
		if read := OutcomeOf(status, payload); want.read == nil {
			require.NoError(t, read)
		} else {
			require.EqualError(t, read, want.read.Error())
			require.Equal(t, limiter.OutcomeOf(want.read), limiter.OutcomeOf(read))
		}
	}
	require.ErrorIs(t, OutcomeOf(200, nil), limiter.ErrUnknownOutcome, "a status of a later version")
}
