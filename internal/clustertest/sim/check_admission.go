package sim

import (
	"cmp"
	"slices"
	"time"
)

// checkRate checks every interval between a call and an answer. The units of the takes inside it must not exceed the
// units that a bucket admits in that time. The bound uses a clock that is too fast by the maximum drift. It uses only
// the observations of clients.
func checkRate(records []record, burst, perSecond int64) (violations []string) {
	return eachInterval(records, func(units int64, length time.Duration) bool {
		longest := length.Nanoseconds() + driftOf(length)
		return units*int64(time.Second) <= burst*int64(time.Second)+perSecond*longest
	})
}

// checkWindow does the same for a sliding log of max units a window.
func checkWindow(records []record, most int64, window time.Duration) (violations []string) {
	return eachInterval(records, func(units int64, length time.Duration) bool {
		windows := (length.Nanoseconds()+driftOf(length))/window.Nanoseconds() + 1
		return units <= most*windows
	})
}

// driftOf returns how much more than a real duration a node's clock may show, in ns.
func driftOf(d time.Duration) int64 { return d.Nanoseconds()*maxDriftPPM/1_000_000 + 1 }

func eachInterval(records []record, allowed func(units int64, length time.Duration) bool) (violations []string) {
	takes := slices.DeleteFunc(slices.Clone(records), func(r record) bool { return r.taken() == 0 })
	slices.SortFunc(takes, func(a, b record) int { return cmp.Compare(a.back, b.back) })
	for _, first := range takes {
		units := int64(0)
		for _, r := range takes {
			if r.called < first.called {
				continue
			}
			units += r.taken()
			if !allowed(units, r.back-first.called) {
				violations = append(
					violations, say("%s: %d units admitted between %v and %v", r.key, units, first.called, r.back))
				break
			}
		}
	}
	return violations[:min(len(violations), 1)] // further violations report the same
}
