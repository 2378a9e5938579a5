package script

import (
	"math"

	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/rule"
)

// Most limiter scripts count hits in a fixed window that begins at the first hit: a whole number under one key, with an
// expiry. They differ in the moment at which they set the expiry, and in their answers. The following functions are the
// Redis commands that these scripts consist of.

// count returns the number under the key.
func (r *Run) count() int64 {
	if !r.live {
		return 0
	}
	return r.record.words[0]
}

// put is SET: it stores the bits of a number without an expiry.
func (r *Run) put(n int64) {
	r.live, r.Effect = true, wrote
	r.record.words[0], r.record.expiresMs = n, arith.Never
}

// incrBy is INCRBY, within the integers that doubles represent exactly.
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

// whole returns an argument that is a whole number.
func (r *Run) whole(i int) int64 { return arith.Truncate(r.arg[i]) }

// seconds returns an argument in whole seconds, as milliseconds.
func (r *Run) seconds(i int) int64 { return secondsToMs(r.arg[i]) }

// answers sets the numbers of the answer: for most scripts a count and a time.
func (r *Run) answers(words ...int64) { copy(r.Answer[:], words) }

// blockedCount is the count in the answer about a blocked key: an integer in every client, and above the limit of any
// library whose limits are below 2^31.
const blockedCount = math.MaxInt32

// endlessMs is the time in the answer about a block without end: a leap year, because no library has an infinite time.
// Replicas must answer alike, so it stays when the bound of windows changes.
const endlessMs = 366 * 24 * 3600 * 1000

// blockedForMs returns the time in the answer about a blocked key.
func blockedForMs(leftMs int64) int64 {
	if leftMs < 0 {
		return endlessMs
	}
	return leftMs
}

// countBlocked answers a count and a time about a blocked key.
func countBlocked(r *Run, leftMs int64) {
	r.Admitted = false
	r.answers(blockedCount, blockedForMs(leftMs))
}

// The following functions are the plain commands that libraries send beside their scripts.

// countGet answers the number and its PTTL (-2: no key), or the bytes.
func countGet(r *Run) { r.answersValue() }

// countSet has the arguments number, time to live in ms (0: none).
func countSet(r *Run) {
	r.Admitted = true
	r.record = Record{shape: shapeCount}
	r.put(r.whole(0))
	if r.arg[1] > 0 {
		r.expireMs(r.whole(1))
	}
}

// countAdd has the increment as its argument. It answers the number.
func countAdd(r *Run) {
	r.Admitted = true
	r.answers(r.incrBy(r.whole(0)))
}

// countExpire has the time to live in ms as its argument. It answers whether the key existed.
func countExpire(r *Run) {
	r.Admitted = true
	if r.live {
		r.answers(1)
		r.expireMs(r.whole(0))
	}
}
