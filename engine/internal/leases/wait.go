package leases

import (
	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/engine/internal/arith"
)

// FreeAtNs returns when enough leases will have expired to free units. The set must have at least as many units.
// The result is arith.Never if one of these leases has no end.
func (l *Set) FreeAtNs(s *arena.Slab, units int64) int64 {
	first, freed := arith.Never, int64(0)
	for _, x := range l.All(s) {
		if x.ExpiresNs < first {
			first, freed = x.ExpiresNs, 0
		}
		if x.ExpiresNs == first {
			freed += x.Units
		}
	}
	if freed >= units {
		return first
	}
	return l.freeAtLater(s, units)
}

// leaseEnd is the expiry and the units of a lease.
type leaseEnd struct{ atNs, units int64 } // atNs may be arith.Never

// freeAtLater is FreeAtNs for units that need leases of several expiries.
func (l *Set) freeAtLater(s *arena.Slab, units int64) int64 {
	ends := make([]leaseEnd, 0, l.Count)
	for _, x := range l.All(s) {
		ends = append(ends, leaseEnd{x.ExpiresNs, x.Units})
	}
	return selectEnd(ends, units)
}

// selectEnd returns the first instant by which ends have freed units, and reorders ends. Together the ends must
// free as many units. Each round halves the span of time, so there are at most 63.
func selectEnd(ends []leaseEnd, units int64) int64 {
	for {
		firstNs, lastNs := spanOf(ends)
		if firstNs == lastNs {
			return firstNs
		}
		early, freed := splitEnds(ends, firstNs+(lastNs-firstNs)/2)
		if freed >= units {
			ends = ends[:early]
		} else {
			ends, units = ends[early:], units-freed
		}
	}
}

func spanOf(ends []leaseEnd) (firstNs, lastNs int64) {
	firstNs, lastNs = ends[0].atNs, ends[0].atNs
	for _, e := range ends {
		firstNs, lastNs = min(firstNs, e.atNs), max(lastNs, e.atNs)
	}
	return firstNs, lastNs
}

// splitEnds moves the ends at or before a time to the front. It returns their number, and the units that they free.
func splitEnds(ends []leaseEnd, untilNs int64) (early int, freed int64) {
	for i, e := range ends {
		if e.atNs <= untilNs {
			ends[i], ends[early] = ends[early], e
			early++
			freed += e.units
		}
	}
	return early, freed
}
