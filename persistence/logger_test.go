package persistence

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestADiskErrorDoesNotSayWhatIsForgotten checks that only the advice about a restart says what is lost. A standalone
// server loses the last second, and a node of a cluster nothing.
func TestADiskErrorDoesNotSayWhatIsForgotten(t *testing.T) {
	for _, err := range []error{ErrDisk, ErrDiskFullLive, ErrDamagedLive} {
		require.NotContains(t, err.Error(), "forgotten")
		require.NotContains(t, err.Error(), "restart")
	}
	require.Contains(t, restartAdvice(fmt.Errorf("%w: flush", ErrDiskFullLive)),
		"yes, after the cause is removed: weir loses at most the last second")
	require.Contains(t, restartAdvice(fmt.Errorf("%w: read", ErrDamagedLive)), "no:")
}
