package script

import (
	"math"

	"github.com/weir-project/weir/engine/internal/arith"
)

// The libraries of Node that count: rate-limiter-flexible, rate-limit-redis (the store
// of express-rate-limit) and @fastify/rate-limit. All answer the count and the time
// left in milliseconds.

// flexibleConsume: points, duration s.
func flexibleConsume(r *Run) {
	if !r.live {
		r.put(0)
		r.expireMs(r.seconds(1))
	}
	consumed, leftMs := r.incrBy(r.whole(0)), r.pttl()
	if leftMs == -1 {
		leftMs = r.seconds(1)
		r.expireMs(leftMs)
	}
	r.Admitted = true
	r.answers(consumed, leftMs)
}

// expressHit: window ms. Since 6.0.
func expressHit(r *Run) { r.expressHit(r.whole(0), false) }

// expressHitReset: reset on change, window ms. 4.2.3 to 5.0.
func expressHitReset(r *Run) { r.expressHit(r.whole(1), r.arg[0] != 0) }

func (r *Run) expressHit(windowMs int64, reset bool) {
	r.Admitted = true
	leftMs := r.pttl()
	if leftMs <= 0 {
		r.put(1)
		r.expireMs(windowMs)
		r.answers(1, windowMs)
		return
	}
	hits := r.incrBy(1)
	if reset {
		r.expireMs(windowMs)
		leftMs = windowMs
	}
	r.answers(hits, leftMs)
}

// expressCount: reset on change, window ms. Until 4.2.2; what it did at the very
// millisecond of the expiry changed with 4.2.1.
func expressCount(r *Run)     { r.expressCount(-1) }
func expressCountZero(r *Run) { r.expressCount(0) }

func (r *Run) expressCount(overMs int64) {
	r.Admitted = true
	hits, leftMs := r.incrBy(1), r.pttl()
	if leftMs <= overMs || r.arg[0] != 0 {
		leftMs = r.whole(1)
		r.expireMs(leftMs)
	}
	r.answers(hits, leftMs)
}

// maxSafe is the largest integer of JavaScript.
const maxSafe = 1<<53 - 1

// fastifyHit: window ms, max, go on when exceeding, exponential back-off. Since 10.3.
func fastifyHit(r *Run) { r.fastifyHit(r.incrBy(1) == 1) }

// fastifyHitTTL is the same until 10.2: a key without an expiry is new, not one that
// counts 1.
func fastifyHitTTL(r *Run) {
	r.incrBy(1)
	r.fastifyHit(r.pttl() == -1)
}

// fastifyHitBan: window ms, max, ban, go on when exceeding. 8.1 to 9.1; also answers
// whether to ban.
func fastifyHitBan(r *Run) {
	window, ban := *r.arg, r.arg[2]
	window[2], window[3] = r.arg[3], 0
	r.arg = &window
	fastifyHitTTL(r)
	r.Answer[2] = arith.OneIf(ban != -1 && float64(r.Answer[0])-r.arg[1] > ban)
}

func (r *Run) fastifyHit(begins bool) {
	hits, windowMs, most := r.count(), r.arg[0], r.arg[1]
	exceeds := float64(hits) > most
	r.Admitted = !exceeds
	switch {
	case begins || r.arg[2] != 0 && exceeds:
	case r.arg[3] != 0 && exceeds:
		windowMs = math.Min(float64(windowMs*arith.Exp2(float64(hits)-most-1)), maxSafe)
	default:
		r.answers(hits, r.pttl())
		return
	}
	r.expireMs(arith.Truncate(windowMs))
	r.answers(hits, arith.Truncate(windowMs))
}

// fastifyRead answers zeros where there is nothing.
func fastifyRead(r *Run) {
	r.Admitted = true
	r.answers(r.count(), max(r.pttl(), 0))
}
