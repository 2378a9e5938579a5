package script

import (
	"math"

	"github.com/weir-project/weir/engine/internal/arith"
)

// Spring Cloud Gateway keeps a token bucket under two keys: its tokens, and the time of its last refill in seconds.
// go-zero uses the same script with small changes. Both keys are created and expire together. They are therefore one
// entry here, under the first key, and the second key is not visible.

// bucketRefill is the common part of both scripts. It refills the bucket at rate tokens a second, and takes the
// requested tokens if the bucket has them. It returns the tokens left.
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

// keepBucket stores the tokens and the time of the refill for ttlS seconds.
func (r *Run) keepBucket(tokens, nowS float64, ttlS float64) {
	r.put(toBits(tokens))
	r.record.words[1] = toBits(nowS)
	r.expireMs(secondsToMs(ttlS))
}

// BucketTTLSeconds returns how long a bucket of go-zero or Spring exists after a request, in whole seconds.
func BucketTTLSeconds(rate, capacity float64) float64 {
	return math.Floor(float64(capacity / rate * 2))
}

// zeroToken has the arguments rate a second, burst, now s, requested. The time is the client's. It answers only
// whether it admits.
func zeroToken(r *Run) {
	var tokens float64
	tokens, r.Admitted = r.bucketRefill(r.arg[0], r.arg[1], r.arg[2], r.arg[3])
	r.keepBucket(tokens, r.arg[2], BucketTTLSeconds(r.arg[0], r.arg[1]))
	r.answers(arith.OneIf(r.Admitted))
}

// springTake has the arguments rate a second, capacity, now s, requested, whether now counts. If now does not count,
// the time is limiter time. It answers whether it admits, and the tokens left.
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
