package chaos

import (
	"errors"
	"testing"
	"time"

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

const ms = int64(time.Millisecond)

// grant is an answered take of units, called and returned at these milliseconds.
func grant(callMs, returnMs, units int64) Op {
	return Op{Verb: Take, Units: units, Granted: units, CallNs: callMs * ms, ReturnNs: returnMs * ms}
}

func unknown(op Op) Op {
	op.Outcome, op.Granted, op.Left = Unknown, 0, 0
	return op
}

func left(op Op, units int64) Op {
	op.Left = units
	return op
}

func requireErr(t *testing.T, bad bool, want, got error) {
	t.Helper()
	if bad {
		require.ErrorIs(t, got, want)
		return
	}
	require.NoError(t, got)
}
