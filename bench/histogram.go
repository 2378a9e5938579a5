package bench

import (
	"math"
	"math/bits"
	"time"
)

// digitBits is the precision of a histogram: a power of two has 2^digitBits buckets. So a quantile is at most 0.1 % too
// large, and never too small.
const digitBits = 10

// histogram counts durations from 1 to longestReply in nanoseconds. Longer ones count as longestReply.
type histogram struct {
	counts [(36-digitBits)<<digitBits + 1<<digitBits]int64 // longestReply has 36 bits
	total  int64
}

func (h *histogram) record(d time.Duration, n int64) {
	ns := uint64(min(max(d, 1), longestReply))
	shift := max(bits.Len64(ns)-digitBits-1, 0)
	h.counts[shift<<digitBits+int(ns>>shift)] += n
	h.total += n
}

func (h *histogram) add(other *histogram) {
	for i, n := range other.counts {
		h.counts[i] += n
	}
	h.total += other.total
}

// quantile returns the longest duration of the bucket that a percentile falls into, or 0 if nothing was recorded.
func (h *histogram) quantile(percentile float64) time.Duration {
	before := max(int64(math.Round(percentile/100*float64(h.total))), 1)
	for i, n := range h.counts {
		if before -= n; before <= 0 && n > 0 {
			return bucketEnd(i)
		}
	}
	return 0
}

// bucketEnd returns the longest duration of a bucket.
func bucketEnd(i int) time.Duration {
	shift := max(i>>digitBits-1, 0)
	return time.Duration((i-shift<<digitBits+1)<<shift - 1)
}
