package membership

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAttemptsToJoinAreLoggedSeldom checks that a node which waits for its cluster logs the reason at once, and later
// twice a minute.
func TestAttemptsToJoinAreLoggedSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log joinLog
		began, told := time.Now(), []time.Duration{}
		attempt := func(what string) {
			if log.due(what) {
				told = append(told, time.Since(began))
			}
		}
		for time.Since(began) < 24*time.Hour {
			attempt("not in a cluster yet")
			time.Sleep(joinEvery)
		}
		require.Equal(t, []time.Duration{
			0, 500 * time.Millisecond, 1500 * time.Millisecond, 3500 * time.Millisecond, 7500 * time.Millisecond,
			15500 * time.Millisecond, 31500 * time.Millisecond, 61500 * time.Millisecond, 91500 * time.Millisecond,
		}, told[:9])
		require.InDelta(t, 24*time.Hour/joinLogEvery, len(told), 10)

		told = nil
		attempt("the cluster has not updated the address of this node yet")
		time.Sleep(joinEvery)
		attempt("the cluster has not updated the address of this node yet")
		time.Sleep(joinEvery / 2)
		attempt("the cluster has not updated the address of this node yet")
		require.Len(t, told, 2, "another reason must be logged at once")
	})
}
