package bench

import "runtime"

const (
	// limitedBy is the share of the cores it can use from which on something counts as
	// busy all the time.
	limitedBy = 0.95
	// sharedBy is the share of all cores from which on server and generator together
	// leave nothing to anybody.
	sharedBy = 0.9
	// lateBy is the share of a p99.9 from which on a generator that sends late made it.
	lateBy = 0.5
)

// generatorLimits reports whether a rate is the generator's and not the server's: its
// threads were busy all along; or the two used up the machine, and it the larger part.
func (s Sample) generatorLimits() bool {
	if s.Threads > 0 {
		return s.GeneratorBusy >= limitedBy*float64(s.Threads)
	}
	return s.GeneratorBusy+s.ServerBusy >= sharedBy*float64(runtime.NumCPU()) && s.GeneratorBusy > s.ServerBusy
}

// late reports whether requests of an open loop left so late that its p99.9 says more
// about the generator than about the server.
func (r Row) late() bool {
	return r.LagP999Ms > 0 && r.LagP999Ms >= lateBy*r.Figures[P999].Median
}

// mostly reports whether something holds for more than half of the samples.
func mostly(samples []Sample, holds func(Sample) bool) bool {
	n := 0
	for _, s := range samples {
		if holds(s) {
			n++
		}
	}
	return 2*n > len(samples)
}
