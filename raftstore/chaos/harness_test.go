package chaos

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// How long clients work on a fake: for dozens of mistakes, and to judge whether it
// is of use.
const (
	mistakeTime = 1500 * time.Millisecond
	usefulTime  = 5 * time.Second
)

// The harness can fail: each way of being wrong is found by the check that is
// there for it, and a server that is right passes them all.
func TestHarnessFindsMistakes(t *testing.T) {
	skipShort(t)
	for name, c := range map[string]struct {
		mistake mistake
		found   []error // by the checks; none for a server that is right
	}{
		"right":                  {none, nil},
		"forgets grants":         {forget, []error{ErrForgotten, ErrNotLinearizable}},
		"charges twice":          {chargeTwice, []error{ErrOvercharged, ErrNotLinearizable}},
		"repeats despite the ID": {idIgnored, []error{ErrNotOnce, ErrOvercharged, ErrNotLinearizable}},
		"answers from the past":  {stale, []error{ErrNotLinearizable}},
		"its clock jumps":        {clockJumps, []error{ErrOverAdmitted}},
		"denies everything":      {denyAll, []error{ErrUseless}},
		"one slot too many":      {extraSlot, []error{ErrOverHeld}},
		"drops leases":           {leaseDropped, []error{ErrLeaseLost, ErrOverHeld}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lasts := mistakeTime
			if c.mistake == none || c.mistake == denyAll {
				lasts = usefulTime
			}
			found := errorsFound(t, workOn(t, startFake(t, c.mistake), lasts))
			for _, want := range c.found {
				require.True(t, anyIs(found, want), "%v was not found, but %v", want, found)
			}
			if c.found == nil {
				require.Empty(t, found)
			}
		})
	}
}

// workOn lets the whole workload run on one server and judges it.
func workOn(t *testing.T, addr string, lasts time.Duration) *Violations {
	t.Helper()
	w := NewWorkload([]string{addr}, 1, &Violations{})
	ctx, cancel := context.WithTimeout(t.Context(), lasts)
	defer cancel()
	w.Run(ctx)
	w.Settle()
	w.Judge(func(*Trail) {})
	seconds := (&Watch{}).led(w.Tally.finished(lasts))
	w.Violations.Add("useful", Useful(usefulnessOf(w.demandPerSecond(), seconds)))
	return w.Violations
}

func errorsFound(t *testing.T, v *Violations) []error {
	t.Helper()
	list, _ := v.List()
	var errs []error
	for _, violation := range list {
		errs = append(errs, violation.Err)
	}
	return errs
}
