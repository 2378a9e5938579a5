package persistence

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestADiskErrorDoesNotSayWhatIsForgotten checks that a disk error does not say what is lost, and only the advice about
// a restart does. A server that runs alone loses the last second, but a node of a cluster loses nothing.
func TestADiskErrorDoesNotSayWhatIsForgotten(t *testing.T) {
	for _, err := range []error{ErrDisk, ErrDiskFullLive, ErrDamagedLive} {
		require.NotContains(t, err.Error(), "forgotten")
		require.NotContains(t, err.Error(), "restart")
	}
	require.Contains(t, restartAdvice(fmt.Errorf("%w: flush", ErrDiskFullLive)),
		"yes, after the cause is removed: weir loses at most the last second")
	require.Contains(t, restartAdvice(fmt.Errorf("%w: read", ErrDamagedLive)), "no:")
}
