package script

import (
	"math"

	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/rule"
)

// These scripts count under two keys that expire at different times. Both keys are one entry here, which exists until
// the later expiry.

// there reports whether one of the two keys still exists, by its expiry. The expiry 0 means that the key does not
// exist.
func (r *Run) there(expiresMs int64) bool {
	return r.live && expiresMs != 0 && r.nowMs() <= expiresMs
}

// nestHit is the script of @nest-lab/throttler-storage-redis. Its arguments are an unused number, window ms, limit,
// block ms. It keeps the hits, their expiry and the expiry of the block. It answers the hits, their remaining time,
// whether the key is blocked, and the remaining time of the block.
func nestHit(r *Run) {
	windowMs, limit, blockMs := r.whole(1), r.arg[2], r.whole(3)
	w := &r.record.words
	hits, leftMs := int64(0), int64(0)
	if r.there(w[1]) {
		hits, leftMs = w[0], w[1]-r.nowMs()
	}
	blocked, blockLeftMs := r.there(w[2]), int64(0)
	hits++
	if leftMs <= 0 {
		leftMs = windowMs
	}
	if blocked {
		blockLeftMs = w[2] - r.nowMs()
	} else if float64(hits) > limit {
		blocked, blockLeftMs = true, blockMs
	}
	if blocked && blockLeftMs <= 0 {
		hits, leftMs, blocked = 1, windowMs, false
	}
	r.put(hits)
	w[1], w[2] = r.nowMs()+leftMs, 0
	if blocked {
		w[2] = r.nowMs() + blockLeftMs
	}
	r.record.expiresMs = max(w[1], w[2])
	r.Admitted = !blocked
	r.answers(hits, leftMs, arith.OneIf(blocked), blockLeftMs)
}

func nestBlocked(r *Run, leftMs int64) {
	leftMs = blockedForMs(leftMs)
	r.answers(blockedCount, leftMs, 1, leftMs)
}

// limitsShift is the first step of limitsSlide and limitsLook. A window that is over becomes the previous
// window. The record keeps the previous count, its expiry and the current count, which lives longer.
// limitsShift returns both counts with their remaining times in ms, -2 for no key.
func (r *Run) limitsShift(windowMs int64) (before, beforeMs, now, nowMs int64) {
	w := &r.record.words
	if nowMs = r.pttl(); nowMs > 0 && nowMs < windowMs {
		w[0], w[1], w[2] = w[2], r.record.expiresMs, 0
		nowMs += windowMs
		r.expireMs(nowMs)
	}
	beforeMs = -2
	if r.there(w[1]) {
		before, beforeMs = w[0], w[1]-r.nowMs()
	}
	if r.live {
		now = w[2]
	}
	return before, beforeMs, now, nowMs
}

// limitsSlide has the arguments limit, window s, amount. It answers whether it admits.
func limitsSlide(r *Run) {
	limit, windowMs, amount := r.arg[0], r.seconds(1), r.whole(2)
	if r.arg[2] > limit {
		return
	}
	before, beforeMs, now, _ := r.limitsShift(windowMs)
	weighted := math.Floor(float64(float64(before)*float64(max(beforeMs, 0)))/float64(windowMs)) + float64(now)
	if weighted+r.arg[2] > limit {
		return
	}
	if now += amount; now < -rule.MaxUnits || now > rule.MaxUnits {
		r.status = Overflow
		return
	}
	if !r.live {
		r.put(0)
		r.record.words[1] = 0
		r.expireMs(2 * windowMs)
	}
	r.record.words[2], r.Effect = now, wrote
	r.Admitted = true
	r.answers(1)
}

// limitsLook has the argument window s. It answers both counts, each with its remaining time.
func limitsLook(r *Run) {
	r.Admitted = true
	before, beforeMs, now, nowMs := r.limitsShift(r.seconds(0))
	r.answers(before, beforeMs, now, nowMs)
}

func limitsLookBlocked(r *Run, leftMs int64) {
	r.answers(0, -2, blockedCount, blockedForMs(leftMs))
}
