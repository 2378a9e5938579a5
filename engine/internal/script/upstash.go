package script

import (
	"math"

	"github.com/weir-project/weir/engine/internal/arith"
)

// @upstash/ratelimit sends the time of the client in milliseconds. Its sliding window counts in aligned windows, each
// under its own key, and a part of the window before the present one counts too. Its token bucket is a hash.

// Log entries and stores contain these numbers and shapes, so they never change.
const (
	UpstashSlide     ID = 53 + iota // limit, now ms, window ms, count
	UpstashSlideLook                // unused, now ms, window ms
	UpstashTake                     // most tokens, interval ms, refill, now ms, cost, rule
	UpstashLook                     // most tokens
)

const (
	// shapeWindows has the number of the last window with a count, the counts of this window (low half) and of the
	// window before it (high half), and the count of the window before those.
	shapeWindows shapes = 42
	shapeUpstash shapes = 43 // doubles: tokens, refilledAt
)

// These rules of UpstashTake tell the releases apart.
const (
	upstashShortens = 0 // before 2.0.7: a bucket that is more than full is deleted
	upstashWhole    = 3 // from 2.2.0 on: a cost above the tokens is refused, and not only an empty bucket
)

// windows are the counts of aligned windows: counts[i] is that of the window i before the last one. In Redis the key of
// a window ends a second after the next window at the earliest. So three windows give the same answers to clients whose
// clocks differ by up to a second, and by less than a window. An older request counts in the window before the last.
type windows struct {
	last   int64
	counts [3]int64
}

// windowsAt returns the counts at the window of the request, and the index of this window.
func (r *Run) windowsAt() (w windows, at int64) {
	number := arith.Truncate(math.Floor(r.arg[1] / r.arg[2]))
	if !r.live {
		return windows{last: number}, 0
	}
	words := r.record.words
	w = windows{words[0], [3]int64{int64(int32(words[1])), words[1] >> 32, words[2]}}
	for ; w.last < number; w.last++ {
		if w.counts == [3]int64{} {
			w.last = number
			break
		}
		w.counts = [3]int64{0, w.counts[0], w.counts[1]}
	}
	return w, arith.OneIf(w.last > number)
}

// weighted returns the part of the window before the window at that still counts, in whole requests.
func (r *Run) weighted(w *windows, at int64) float64 {
	nowMs, windowMs := r.arg[1], r.arg[2]
	past := nowMs - float64(math.Floor(nowMs/windowMs)*windowMs)
	return math.Floor(float64((1 - past/windowMs) * float64(w.counts[at+1])))
}

// upstashSlide answers what is left of the limit, or -1 if it denies, and the limit.
func upstashSlide(r *Run) {
	limit, count := r.arg[0], r.whole(3)
	w, at := r.windowsAt()
	before, now := r.weighted(&w, at), w.counts[at]
	if count > 0 && before+float64(now) >= limit {
		r.answers(-1, arith.Truncate(limit))
		return
	}
	after := now + count
	if after != int64(int32(after)) {
		r.status = Overflow
		return
	}
	w.counts[at] = after
	endsMs := int64(0)
	if r.live {
		endsMs = r.record.expiresMs
	}
	if now == 0 {
		endsMs = max(endsMs, arith.AddNs(r.nowMs(), arith.Truncate(float64(r.arg[2]*2)+1000)))
	}
	r.put(w.last)
	r.record.words = [recordWords]int64{w.last, w.counts[1]<<32 | int64(uint32(w.counts[0])), w.counts[2]}
	r.record.expiresMs, r.Admitted = endsMs, true
	r.answers(arith.Truncate(limit-(float64(after)+before)), arith.Truncate(limit))
}

// upstashSlideLook answers what counts against the limit.
func upstashSlideLook(r *Run) {
	r.Admitted = true
	w, at := r.windowsAt()
	r.answers(arith.Truncate(r.weighted(&w, at) + float64(w.counts[at])))
}

// upstashTake answers the tokens left, or -1 if it denies, the time of the next refill, and the most tokens. A cost
// above the tokens may leave a negative number, which the library reads as a denial.
func upstashTake(r *Run) {
	most, intervalMs, refill, nowMs, cost, rule := r.arg[0], r.arg[1], r.arg[2], r.arg[3], r.arg[4], r.arg[5]
	tokens, refilledMs, endsMs := most, nowMs, arith.Never
	if r.live {
		tokens, refilledMs, endsMs = fromBits(r.record.words[0]), fromBits(r.record.words[1]), r.record.expiresMs
	}
	if nowMs >= refilledMs+intervalMs {
		refills := math.Floor((nowMs - refilledMs) / intervalMs)
		tokens = math.Min(most, tokens+float64(refills*refill))
		refilledMs += float64(refills * intervalMs)
	}
	resetMs := arith.Truncate(refilledMs + intervalMs)
	if cost > 0 && (tokens == 0 || rule == upstashWhole && tokens < cost) {
		r.answers(-1, resetMs, arith.Truncate(most))
		return
	}
	tokens -= cost
	r.Admitted = tokens >= 0
	r.put(toBits(tokens))
	r.record.words[1], r.record.expiresMs = toBits(refilledMs), endsMs
	if ttlMs := float64(math.Ceil((most-tokens)/refill) * intervalMs); ttlMs > 0 || rule == upstashShortens {
		r.expireMs(arith.Truncate(math.Min(ttlMs, 1<<62)))
	}
	r.answers(arith.Truncate(tokens), resetMs, arith.Truncate(most))
}

// upstashLook answers the tokens, the time of the last refill (-1: the bucket is full), and the most tokens.
func upstashLook(r *Run) {
	r.Admitted = true
	most := arith.Truncate(r.arg[0])
	if !r.live {
		r.answers(most, -1, most)
		return
	}
	r.answers(arith.Truncate(fromBits(r.record.words[0])), arith.Truncate(fromBits(r.record.words[1])), most)
}

// The following functions deny until a block ends, by the clock of the library.

func upstashSlideBlocked(r *Run, _ int64) { r.answers(-1, arith.Truncate(r.arg[0])) }

func upstashTakeBlocked(r *Run, leftMs int64) {
	r.answers(-1, arith.Truncate(r.arg[3])+blockedForMs(leftMs), arith.Truncate(r.arg[0]))
}

func upstashLookBlocked(r *Run, _ int64) { r.answers(0, -1, arith.Truncate(r.arg[0])) }
