package bench

import "runtime"

const (
	// limitedBy is the least share of its cores that a saturated process uses.
	limitedBy = 0.95
	// sharedBy is the least share of all cores at which server and generator together saturate the machine.
	sharedBy = 0.9
	// lateBy is the least share of a p99.9 by which a late generator dominates it.
	lateBy = 0.5
)

// generatorLimits reports whether the generator limits a rate instead of the server. Either its threads were saturated,
// or both processes saturated the machine and the generator used the larger part.
func (s Sample) generatorLimits() bool {
	if s.Threads > 0 {
		return s.GeneratorBusy >= limitedBy*float64(s.Threads)
	}
	return s.GeneratorBusy+s.ServerBusy >= sharedBy*float64(runtime.NumCPU()) && s.GeneratorBusy > s.ServerBusy
}

// late reports whether requests of an open loop left so late that its p99.9 depends more on the generator than on the
// server.
func (r Row) late() bool {
	return r.LagP999Ms > 0 && r.LagP999Ms >= lateBy*r.Figures[P999].Median
}

// mostly reports whether a condition holds for more than half of the samples.
func mostly(samples []Sample, holds func(Sample) bool) bool {
	n := 0
	for _, s := range samples {
		if holds(s) {
			n++
		}
	}
	return 2*n > len(samples)
}
