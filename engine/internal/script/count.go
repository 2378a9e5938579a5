package script

import (
	"math"

	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/rule"
)

// Most limiter scripts count hits in a fixed window that begins at the first one: a
// whole number under one key, with an expiry. They differ in when they set it, and
// in what they say. These are the Redis commands they are made of.

// count is the number under the key.
func (r *Run) count() int64 {
	if !r.live {
		return 0
	}
	return r.record.words[0]
}

// put is SET: the number, without an expiry.
func (r *Run) put(n int64) {
	r.live, r.Effect = true, wrote
	r.record.words[0], r.record.expiresMs = n, arith.Never
}

// incrBy is INCRBY, within the integers that doubles hold.
func (r *Run) incrBy(by int64) int64 {
	n := r.count() + by
	if n < -rule.MaxUnits || n > rule.MaxUnits {
		r.status = Overflow
		return 0
	}
	if !r.live {
		r.put(n)
	}
	r.record.words[0], r.Effect = n, wrote
	return n
}

// whole is an argument that is a whole number.
func (r *Run) whole(i int) int64 { return arith.Truncate(r.arg[i]) }

// seconds is an argument in whole seconds, as milliseconds.
func (r *Run) seconds(i int) int64 { return secondsToMs(r.arg[i]) }

// answers says the count and a time, as most do.
func (r *Run) answers(words ...int64) { copy(r.Answer[:], words) }

// blockedCount is the count that a blocked key shows: above every limit, and an
// integer in every client.
const blockedCount = math.MaxInt32

// blockedForMs is the time a blocked key shows; one that is blocked without end shows a
// leap year, because no library knows such a thing.
func blockedForMs(leftMs int64) int64 {
	if leftMs < 0 {
		return rule.MaxWindowNs / 1e6
	}
	return leftMs
}

// countBlocked answers a count and a time.
func countBlocked(r *Run, leftMs int64) {
	r.Admitted = false
	r.answers(blockedCount, blockedForMs(leftMs))
}

// The plain commands that libraries send beside their scripts.

// countGet answers the number and its PTTL (-2: there is none), or the bytes.
func countGet(r *Run) { r.answersValue() }

// countSet: number, time to live in ms (0: none).
func countSet(r *Run) {
	r.Admitted = true
	r.record = Record{shape: shapeCount}
	r.put(r.whole(0))
	if r.arg[1] > 0 {
		r.expireMs(r.whole(1))
	}
}

// countAdd: by how much. Answers the number.
func countAdd(r *Run) {
	r.Admitted = true
	r.answers(r.incrBy(r.whole(0)))
}

// countExpire: time to live in ms. Answers whether the key was there.
func countExpire(r *Run) {
	r.Admitted = true
	if r.live {
		r.answers(1)
		r.expireMs(r.whole(0))
	}
}
