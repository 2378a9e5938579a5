package bench

import (
	"math"
	"slices"
)

// Spread summarizes the repetitions of one figure.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// spreadOf returns the zero Spread for no values.
func spreadOf(values []float64) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return Spread{
		Median: (sorted[(n-1)/2] + sorted[n/2]) / 2,
		Min:    sorted[0],
		Max:    sorted[n-1],
	}
}

// medianRank returns the greatest k for which the interval from the k-th least to the k-th greatest of n independent
// values misses their median with at most the given probability. It returns 0 if no interval is that certain.
//
// Each value lies below the median with probability 1/2, so the number of such values is binomial. The interval misses
// the median if fewer than k values lie below it or above it. This is the interval of the sign test. It assumes
// nothing about the distribution of the values.
func medianRank(n int, risk float64) (k int) {
	fewer := 0.0 // probability that at most k values lie below the median
	exactly := math.Pow(0.5, float64(n))
	for ; k < n; k++ {
		if fewer += exactly; 2*fewer > risk {
			return k
		}
		exactly *= float64(n-k) / float64(k+1)
	}
	return k
}

// medianInterval returns a confidence interval of the median; ok is false if there are too few values.
func medianInterval(values []float64, risk float64) (low, high float64, ok bool) {
	k := medianRank(len(values), risk)
	if k == 0 {
		return 0, 0, false
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[k-1], sorted[len(sorted)-k], true
}
