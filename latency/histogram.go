package latency

import (
	"math/bits"
	"sync/atomic"
	"time"
)

const (
	// unit is the upper bound of the first bucket. Shorter durations need not be distinguished.
	unit = time.Microsecond
	// steps is the number of buckets in each power of two above unit.
	steps = 4
	// octaves is the number of powers of two above unit. They reach 2^26 µs, about 67 s, which is longer than any
	// wait that is measured.
	octaves = 26
	// Buckets is the number of counters. The last bucket has no upper bound.
	Buckets = octaves*steps + 2
)

// Histogram counts durations. Its zero value is ready for use. Any goroutine may use it.
type Histogram struct {
	counts [Buckets]atomic.Int64
	sumNs  atomic.Int64
}

// Observe counts the duration d n times.
func (h *Histogram) Observe(d time.Duration, n int64) {
	h.counts[bucketOf(d)].Add(n)
	h.sumNs.Add(int64(d) * n)
}

// Snapshot is a copy of the counters of a Histogram.
type Snapshot struct {
	Counts [Buckets]int64 // the number of durations in each bucket
	Count  int64          // the number of all durations
	Sum    time.Duration  // the sum of all durations
}

// Snapshot reads the counters one after the other. A duration that is counted meanwhile may be missing from
// the counts, from Sum, or from both. Count always equals the sum of Counts.
func (h *Histogram) Snapshot() (s Snapshot) {
	s.Sum = time.Duration(h.sumNs.Load())
	for i := range h.counts {
		s.Counts[i] = h.counts[i].Load()
		s.Count += s.Counts[i]
	}
	return s
}

// Add adds the counts of another snapshot.
func (s *Snapshot) Add(other *Snapshot) {
	for i, n := range other.Counts {
		s.Counts[i] += n
	}
	s.Count, s.Sum = s.Count+other.Count, s.Sum+other.Sum
}

// bucketOf returns the bucket with the smallest upper bound that is not below d.
func bucketOf(d time.Duration) int {
	if d <= unit {
		return 0
	}
	parts := uint64((d - 1) / (unit / steps)) // at least steps; a bound itself is in its own bucket
	octave := bits.Len64(parts/steps) - 1
	step := parts >> octave & (steps - 1)
	return min(octave*steps+int(step)+1, Buckets-1)
}

// Bound returns the upper bound of bucket i, the longest duration that it counts. i is at most Buckets-2, because the
// last bucket has no upper bound.
func Bound(i int) time.Duration {
	if i == 0 {
		return unit
	}
	octave, step := (i-1)/steps, (i-1)%steps
	return unit << octave * time.Duration(steps+step+1) / steps
}

// Cumulative returns the buckets of a Prometheus histogram: for each bound, how many durations were at most that long.
// The bounds are 1, 2, 4 and more microseconds, given in seconds.
func (s *Snapshot) Cumulative() map[float64]uint64 {
	bounds := make(map[float64]uint64, octaves+1)
	var sum int64
	for i := range Buckets - 1 {
		sum += s.Counts[i]
		if i%steps == 0 {
			bounds[Bound(i).Seconds()] = uint64(sum)
		}
	}
	return bounds
}
