package limiter

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
)

// TestOutcomes checks that every outcome has words, and is found in an error that wraps it and in its status.
func TestOutcomes(t *testing.T) {
	for o := Outcome(1); int(o) < len(outcomes); o++ {
		require.NotEmpty(t, outcomes[o].word)
		require.NotEmpty(t, o.Error())
		require.Equal(t, o, OutcomeOf(fmt.Errorf("why: %w", o)))
		require.Equal(t, o, OutcomeOfStatus(o.Status()))
		require.Equal(t, o == ErrUnknownOutcome || o == ErrSomeGroups, o.MayBeDone(), o.Error())
	}
	require.Equal(t, ErrCrossSlot, OutcomeOf(ErrSharedInTx))
	require.ErrorIs(t, ErrSharedInTx, ErrCrossSlot)
	require.Equal(t, ErrUnknownOutcome, OutcomeOf(errors.New("anything else")))
	require.Equal(t, "CLUSTERDOWN why: the cluster has no leader, nothing was counted",
		ErrClusterDown.Reply(fmt.Errorf("why: %w", ErrClusterDown)))
	require.Equal(t, "TRYAGAIN not applied, send it again", ErrTryAgain.Reply(fmt.Errorf("secret: %w", ErrTryAgain)))
}

// TestStatusesKeepTheirNumbers checks the numbers that nodes of different versions send to each other.
func TestStatusesKeepTheirNumbers(t *testing.T) {
	require.EqualValues(t, 17, engine.ValueTooLong)
	for i, o := range []Outcome{ErrWrongGroup, ErrCrossSlot, ErrTryAgain, ErrClusterDown, ErrOverloaded, ErrOldMember,
		ErrUnknownOutcome, ErrSomeGroups} {
		require.EqualValues(t, 18+i, o.Status())
	}
	for s := engine.OK; s < engine.NotDecided; s++ {
		require.Zero(t, OutcomeOfStatus(s))
	}
	require.Equal(t, ErrUnknownOutcome, OutcomeOfStatus(127), "a status of a later version")
}
