package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/clustertest/ledger"
)

// mistakeTime lets clients work on a fake long enough for dozens of mistakes. usefulTime is long enough to judge
// whether a correct server is useful.
const (
	// attempts bounds the repeats of a run. A machine that stood still hides a mistake, or makes a correct server
	// seem useless.
	attempts    = 5
	mistakeTime = 1500 * time.Millisecond
	usefulTime  = 5 * time.Second
)

// TestHarnessFindsMistakes checks the harness itself. The check for each mistake must find it, and a correct server
// must pass every check.
func TestHarnessFindsMistakes(t *testing.T) {
	skipShort(t)
	for name, c := range map[string]struct {
		mistake mistake
		found   []error // by the checks; none for a correct server
	}{
		"right":                   {none, nil},
		"forgets grants":          {forget, []error{ledger.ErrNotLinearizable}},
		"charges twice":           {chargeTwice, []error{ledger.ErrNotLinearizable}},
		"repeats despite the ID":  {idIgnored, []error{ErrNotOnce, ledger.ErrNotLinearizable}},
		"answers from the past":   {stale, []error{ledger.ErrNotLinearizable}},
		"its clock jumps":         {clockJumps, []error{ledger.ErrOverAdmitted}},
		"denies everything":       {denyAll, []error{ErrUseless}},
		"one slot too many":       {extraSlot, []error{ledger.ErrOverHeld}},
		"drops leases":            {leaseDropped, []error{ErrLeaseLost, ledger.ErrOverHeld}},
		"takes a part of a check": {partOfCheck, []error{ledger.ErrNotLinearizable, ledger.ErrUnexplained}},
		"settles a hold twice":    {commitAgain, []error{ledger.ErrNotLinearizable, ledger.ErrUnexplained}},
		"keeps a cancelled hold":  {cancelForgotten, []error{ledger.ErrNotLinearizable}},
		"ends holds early":        {holdsEndEarly, []error{ledger.ErrOverHeld}},
		"makes half of a change":  {halfChange, []error{ledger.ErrNotLinearizable}},
		"keeps usage at a reset":  {resetForgotten, []error{ledger.ErrNotLinearizable}},
		"keeps a released slot":   {slotKept, []error{ErrSlotLost}},
		"denies all of a window":  {denySlidings, []error{ErrUseless}},
		"refuses what it knows":   {repeatRefused, []error{ErrNotOnce}},
		"reads what was":          {readsBehind, []error{ledger.ErrNotLinearizable}},
		"says it is fresher":      {ageUnderstated, []error{ledger.ErrUnderstated}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lasts := mistakeTime
			if c.mistake == none || c.mistake == denyAll || c.mistake == denySlidings {
				lasts = usefulTime
			}
			over := time.Duration(0)
			if c.mistake == none {
				over = fleetingOver
			}
			var found []error
			for range attempts {
				if found = errorsFound(t, workOn(t, startFake(t, c.mistake), lasts, over)); shown(found, c.found) {
					break
				}
			}
			for _, want := range c.found {
				require.True(t, anyIs(found, want), "%v was not found, but %v", want, found)
			}
			if c.found == nil {
				require.Empty(t, found)
			}
		})
	}
}

// shown reports whether a run decides the case. A run on a machine that stood still decides nothing if it missed a
// mistake, or if it only found a correct server useless.
func shown(found, wanted []error) bool {
	if wanted == nil {
		return len(found) == 0 ||
			slices.ContainsFunc(found, func(err error) bool { return !errors.Is(err, ErrUseless) })
	}
	return !slices.ContainsFunc(wanted, func(want error) bool { return !anyIs(found, want) })
}

// workOn runs the whole workload on one server and judges it. All holds expire before that.
func workOn(t *testing.T, addr string, lasts, over time.Duration) *Violations {
	t.Helper()
	w := NewWorkload([]string{addr}, 1, &Violations{})
	w.over = over
	ctx, cancel := context.WithTimeout(t.Context(), lasts)
	defer cancel()
	w.Run(ctx)
	w.Settle()
	w.Judge(func(string, fmt.Stringer) {})
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

// TestHoldsDoNotStandForUnitsThatAreLost checks that an active hold does not explain lost units. A missing
// acknowledged check is found even if a hold of as many units is still active.
func TestHoldsDoNotStandForUnitsThatAreLost(t *testing.T) {
	skipShort(t)
	w := NewWorkload([]string{startFake(t, none)}, 1, &Violations{})
	w.found(t.Context())
	c := w.client(0, patientTimeout)
	defer c.Close()
	ring := &w.Books.Fleeting
	trail := ring.Next()
	pairs := ring.Traffic.Looks(trail)[0].Pairs
	hold, outcome := w.enter(
		c, trail, ledger.Op{Verb: ledger.Reserve, Pairs: pairs, ID: "h", Units: 3, TTLNs: int64(fleetingTTL)}, false)
	require.Equal(t, Answered, outcome)
	lost := ledger.Op{Verb: ledger.Check, Pairs: pairs, Units: 3, CallNs: hold.CallNs,
		ReturnNs: hold.ReturnNs, Answer: hold.Answer}
	trail.Add(lost)
	w.settleBooks(c)
	require.True(t, anyIs(errorsFound(t, w.Violations), ledger.ErrUnexplained))
}
