package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ErrOverAdmitted reports that more units were granted within some interval than the limit allows.
var ErrOverAdmitted = errors.New("over-admitted")

// Grant is an answered request that took units. It happened between its call and its return.
type Grant struct{ CallNs, ReturnNs, Units int64 }

// Grants returns what the answered takes of a history received.
func Grants(ops []Op) (grants []Grant) {
	for i := range ops {
		if units := ops[i].Granted(); units > 0 {
			grants = append(grants, Grant{CallNs: ops[i].CallNs, ReturnNs: ops[i].ReturnNs, Units: units})
		}
	}
	return grants
}

// roundingUnits is the tolerance for the float arithmetic of the checker, not for the server.
const roundingUnits = 1e-6

// OverAdmittedBucket checks a token bucket from outside. For every interval from the call of one grant to the return of
// another, the units of all grants inside it are at most burst + rate x length x (1 + rho). rho is how much faster than
// the clients' clock the limiter's clock may run. The check covers all n² intervals in O(n log n).
//
// The interval's start moves from late to early over the calls. A tree over the returns holds granted(e) - rate x e for
// each possible end e, over the grants seen so far. Its maximum is the worst end for this start.
func OverAdmittedBucket(burst, perSecond, rho float64, grants []Grant) error {
	grants = slices.Clone(grants)
	slices.SortFunc(grants, func(a, b Grant) int { return cmp.Compare(a.ReturnNs, b.ReturnNs) })
	byCall := make([]int, len(grants))
	for i := range byCall {
		byCall[i] = i
	}
	slices.SortFunc(byCall, func(a, b int) int { return cmp.Compare(grants[b].CallNs, grants[a].CallNs) })

	perNs := perSecond * (1 + rho) / 1e9
	ends := newMaxTree(len(grants))
	for _, i := range byCall {
		ends.raise(i, -perNs*float64(grants[i].ReturnNs)) // its return is a possible end from now on
		ends.addFrom(i, float64(grants[i].Units))
		start := grants[i].CallNs
		worst, end := ends.max()
		if excess := worst + perNs*float64(start) - burst; excess > roundingUnits {
			return overAdmitted(excess, start, grants[end].ReturnNs, grants)
		}
	}
	return nil
}

// OverAdmittedWindow checks a sliding window from outside. Within any interval shorter than k windows, by a clock that
// is rho slower, at most k x max units are granted, for k up to four. An excess at the boundary of two windows shows in
// the longer intervals.
func OverAdmittedWindow(maxUnits int64, window time.Duration, rho float64, grants []Grant) error {
	for k := int64(1); k <= 4; k++ {
		lengthNs := int64(float64(k*window.Nanoseconds()) / (1 + rho))
		if err := overWindow(k*maxUnits, lengthNs, grants); err != nil {
			return err
		}
	}
	return nil
}

// overWindow slides an interval (end - lengthNs, end] over the returns and counts
// the grants that were called and answered within it.
func overWindow(most, lengthNs int64, grants []Grant) error {
	all := slices.Values(grants)
	byReturn := slices.SortedFunc(all, func(a, b Grant) int { return cmp.Compare(a.ReturnNs, b.ReturnNs) })
	byCall := slices.SortedFunc(all, func(a, b Grant) int { return cmp.Compare(a.CallNs, b.CallNs) })
	var inside int64
	gone := 0
	for _, op := range byReturn {
		startNs := op.ReturnNs - lengthNs
		if op.CallNs > startNs {
			inside += op.Units
		}
		for gone < len(byCall) && byCall[gone].CallNs <= startNs {
			// A grant that took longer than the interval was never inside it.
			if left := byCall[gone]; left.ReturnNs-left.CallNs < lengthNs {
				inside -= left.Units
			}
			gone++
		}
		if inside > most {
			return overAdmitted(float64(inside-most), startNs+1, op.ReturnNs, grants)
		}
	}
	return nil
}

// shownGrants bounds the grants in an error.
const shownGrants = 40

func overAdmitted(excess float64, startNs, endNs int64, grants []Grant) error {
	var inside strings.Builder
	units, count := int64(0), 0
	for _, g := range grants {
		if g.CallNs < startNs || g.ReturnNs > endNs {
			continue
		}
		units += g.Units
		if count++; count <= shownGrants {
			fmt.Fprintf(&inside, "  %d units, %v .. %v\n", g.Units, time.Duration(g.CallNs), time.Duration(g.ReturnNs))
		}
	}
	return fmt.Errorf("%w: %d units within %v by %d grants, %.3f more than allowed:\n%s",
		ErrOverAdmitted, units, time.Duration(endNs-startNs), count, excess, inside.String())
}
