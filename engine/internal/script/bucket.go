package script

import (
	"math"

	"github.com/weir-project/weir/engine/internal/arith"
)

// Token buckets that hold their tokens and the time of their last refill in seconds
// under two keys: Spring Cloud Gateway and, after it, go-zero. Both keys live and end
// together, so that they are one entry here, under the first; the second is not seen.

// bucketRefill is what the scripts do: rate a second, capacity, requested.
func (r *Run) bucketRefill(rate, capacity, nowS, requested float64) (tokens float64, admitted bool) {
	tokens, refreshedS := capacity, 0.0
	if r.live {
		tokens, refreshedS = fromBits(r.record.words[0]), fromBits(r.record.words[1])
	}
	elapsedS := math.Max(0, nowS-refreshedS)
	tokens = math.Min(capacity, tokens+float64(elapsedS*rate))
	admitted = tokens >= requested
	if admitted {
		tokens -= requested
	}
	return tokens, admitted
}

// keepBucket stores the tokens for as long as it takes to fill the bucket twice.
func (r *Run) keepBucket(tokens, nowS float64, ttlS float64) {
	r.put(toBits(tokens))
	r.record.words[1] = toBits(nowS)
	r.expireMs(secondsToMs(ttlS))
}

// BucketTTLSeconds is how long a bucket of go-zero or Spring is kept after a request,
// in whole seconds.
func BucketTTLSeconds(rate, capacity float64) float64 {
	return math.Floor(float64(capacity / rate * 2))
}

// zeroToken: rate a second, burst, now s, requested. The client brings the time.
// Answers only whether it admits.
func zeroToken(r *Run) {
	var tokens float64
	tokens, r.Admitted = r.bucketRefill(r.arg[0], r.arg[1], r.arg[2], r.arg[3])
	r.keepBucket(tokens, r.arg[2], BucketTTLSeconds(r.arg[0], r.arg[1]))
	r.answers(arith.OneIf(r.Admitted))
}

// springTake: rate a second, capacity, now s, requested, whether now counts. Without
// it the time is Redis' own. Answers whether it admits, and the tokens left.
func springTake(r *Run) {
	nowS := r.arg[2]
	if r.arg[4] == 0 {
		nowS = float64(r.nowNs / 1e9)
	}
	var tokens float64
	tokens, r.Admitted = r.bucketRefill(r.arg[0], r.arg[1], nowS, r.arg[3])
	if ttlS := BucketTTLSeconds(r.arg[0], r.arg[1]); ttlS > 0 {
		r.keepBucket(tokens, nowS, ttlS)
	}
	r.answers(arith.OneIf(r.Admitted), arith.Truncate(tokens))
}
