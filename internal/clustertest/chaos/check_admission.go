package chaos

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// ErrOverAdmitted reports that more units were granted within some interval than the limit allows.
var ErrOverAdmitted = errors.New("over-admitted")

// Rho is how much faster than the clients' clock the cluster's clock may run. Both use oscillators of one machine, and
// NTP may slew one of them at up to 500 ppm.
const Rho = 0.001

// roundingUnits is the tolerance for the float arithmetic of the checker, not for the server.
const roundingUnits = 1e-6

// OverAdmittedBucket checks a token bucket from outside. For every interval from the call of one grant to the return of
// another, the units of all grants inside it are at most burst + rate x length x (1 + Rho). It covers all n² intervals
// in O(n log n).
//
// The interval's start moves from late to early over the calls. A tree over the returns holds granted(e) - rate x e for
// each possible end e, over the grants seen so far. Its maximum is the worst end for this start.
func OverAdmittedBucket(burst, perSecond float64, ops []Op) error {
	grants := grantsOf(ops)
	slices.SortFunc(grants, func(a, b Op) int { return compareNs(a.ReturnNs, b.ReturnNs) })
	byCall := make([]int, len(grants))
	for i := range byCall {
		byCall[i] = i
	}
	slices.SortFunc(byCall, func(a, b int) int { return compareNs(grants[b].CallNs, grants[a].CallNs) })

	perNs := perSecond * (1 + Rho) / 1e9
	ends := newMaxTree(len(grants))
	for _, i := range byCall {
		ends.raise(i, -perNs*float64(grants[i].ReturnNs)) // its return is a possible end from now on
		ends.addFrom(i, float64(grants[i].Granted))
		start := grants[i].CallNs
		worst, end := ends.max()
		if excess := worst + perNs*float64(start) - burst; excess > roundingUnits {
			return overAdmitted(excess, start, grants[end].ReturnNs, grants)
		}
	}
	return nil
}

// OverAdmittedSliding checks a sliding window from outside. Within any interval shorter than k windows, by a clock that
// is Rho slower, at most k x max units are granted, for k up to four. An excess at the boundary of two windows shows in
// the longer intervals.
func OverAdmittedSliding(maxUnits int64, window time.Duration, ops []Op) error {
	grants := grantsOf(ops)
	for k := int64(1); k <= 4; k++ {
		lengthNs := int64(float64(k*window.Nanoseconds()) / (1 + Rho))
		if err := overWindow(k*maxUnits, lengthNs, grants); err != nil {
			return err
		}
	}
	return nil
}

// overWindow slides an interval (end - lengthNs, end] over the returns and counts
// the grants that were called and answered within it.
func overWindow(most, lengthNs int64, grants []Op) error {
	byReturn := slices.SortedFunc(slices.Values(grants), func(a, b Op) int { return compareNs(a.ReturnNs, b.ReturnNs) })
	byCall := slices.SortedFunc(slices.Values(grants), func(a, b Op) int { return compareNs(a.CallNs, b.CallNs) })
	var inside int64
	gone := 0
	for _, op := range byReturn {
		startNs := op.ReturnNs - lengthNs
		if op.CallNs > startNs {
			inside += op.Granted
		}
		for gone < len(byCall) && byCall[gone].CallNs <= startNs {
			// A grant that took longer than the interval was never inside it.
			if left := byCall[gone]; left.ReturnNs-left.CallNs < lengthNs {
				inside -= left.Granted
			}
			gone++
		}
		if inside > most {
			return overAdmitted(float64(inside-most), startNs+1, op.ReturnNs, grants)
		}
	}
	return nil
}

func grantsOf(ops []Op) []Op {
	var grants []Op
	for _, op := range ops {
		if op.grants() > 0 {
			grants = append(grants, op)
		}
	}
	return grants
}

func overAdmitted(excess float64, startNs, endNs int64, grants []Op) error {
	var inside []Op
	var units int64
	for _, op := range grants {
		if op.CallNs >= startNs && op.ReturnNs <= endNs {
			inside = append(inside, op)
			units += op.Granted
		}
	}
	return fmt.Errorf("%w: %d units within %v, %.3f more than allowed:\n%s",
		ErrOverAdmitted, units, time.Duration(endNs-startNs), excess, show(inside))
}

func compareNs(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
