package chaos

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func anyIs(errs []error, target error) bool {
	for _, err := range errs {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

func requireErr(t *testing.T, bad bool, want, got error) {
	t.Helper()
	if bad {
		require.ErrorIs(t, got, want)
		return
	}
	require.NoError(t, got)
}
