package script

import (
	"math"

	"github.com/weir-project/weir/engine/internal/arith"
)

// These are the counting libraries of Node: rate-limiter-flexible, rate-limit-redis (the store of express-rate-limit)
// and @fastify/rate-limit. All answer the count and the remaining time in milliseconds.

// flexibleConsume has the arguments points, duration s.
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

// expressHit has the argument window ms. rate-limit-redis sends it since 6.0.
func expressHit(r *Run) { r.expressHit(r.whole(0), false) }

// expressHitReset has the arguments reset on change, window ms. rate-limit-redis sends it from 4.2.3 to 5.0.
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

// expressCount and expressCountZero have the arguments reset on change, window ms. rate-limit-redis sends
// expressCountZero before 4.2.1, and expressCount in 4.2.1 and 4.2.2. In the millisecond of the expiry, only
// expressCountZero begins a new window.
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

// fastifyHit has the arguments window ms, max, go on when exceeding, exponential back-off. @fastify/rate-limit sends it
// since 10.3.
func fastifyHit(r *Run) { r.fastifyHit(r.incrBy(1) == 1) }

// fastifyHitTTL has the same arguments and is sent until 10.2. A key is new if it has no expiry, and for
// fastifyHit if it counts 1.
func fastifyHitTTL(r *Run) {
	r.incrBy(1)
	r.fastifyHit(r.pttl() == -1)
}

// fastifyHitBan has the arguments window ms, max, ban, go on when exceeding. @fastify/rate-limit sends it from 8.1 to
// 9.1. It also answers whether to ban.
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

// fastifyRead answers zeros for a missing key.
func fastifyRead(r *Run) {
	r.Admitted = true
	r.answers(r.count(), max(r.pttl(), 0))
}
