package engine

import (
	"math/bits"

	"github.com/weir-project/weir/engine/internal/arith"
)

// The sliding window counter keeps the window it counts in and the one before:
// startNs(8) prev(8) cur(8).
type slidingCounter struct{ startNs, prev, cur int64 }

func readSlidingCounter(b []byte) slidingCounter {
	return slidingCounter{int64(le.Uint64(b)), int64(le.Uint64(b[8:])), int64(le.Uint64(b[16:]))}
}

func (w slidingCounter) write(b []byte) {
	le.PutUint64(b, uint64(w.startNs))
	le.PutUint64(b[8:], uint64(w.prev))
	le.PutUint64(b[16:], uint64(w.cur))
}

// roll moves on to the window around now. The state is not idle, so that is this
// window or the next.
func (w slidingCounter) roll(nowNs, windowNs int64) slidingCounter {
	if nowNs-w.startNs < windowNs {
		return w
	}
	return slidingCounter{w.startNs + windowNs, w.cur, 0}
}

func (w slidingCounter) idleAtNs(windowNs int64) int64 {
	switch {
	case w.cur > 0:
		return w.startNs + 2*windowNs
	case w.prev > 0:
		return w.startNs + windowNs
	}
	return 0
}

// weight is what the previous window still counts, times the window's length.
func (w slidingCounter) weight(nowNs, windowNs int64) arith.Uint128 {
	return arith.Mul(uint64(w.prev), uint64(w.startNs+windowNs-nowNs))
}

// used is the estimate, rounded up: with whole units to give, that is exact.
func (w slidingCounter) used(nowNs, windowNs int64) int64 {
	return w.cur + w.weight(nowNs, windowNs).DivUp(uint64(windowNs))
}

// fallsToNs is how far into a window its share of prev has fallen to at most left
// units.
func fallsToNs(prev, left, windowNs int64) int64 {
	if prev <= left {
		return 0
	}
	hi, lo := bits.Mul64(uint64(left), uint64(windowNs))
	q, _ := bits.Div64(hi, lo, uint64(prev)) // below windowNs, for left < prev
	return windowNs - int64(q)
}

// retryAtNs is when want units fit, in this window or the next.
func (w slidingCounter) retryAtNs(l *Limit, want int64) int64 {
	left := l.Max - want
	if w.cur <= left {
		return w.startNs + fallsToNs(w.prev, left-w.cur, l.WindowNs)
	}
	return w.startNs + l.WindowNs + fallsToNs(w.cur, left, l.WindowNs)
}

func (s *shard) nextSlidingCounter(c *cell, op *Op, d *Decision) nextState {
	l := &op.Limit
	w := slidingCounter{startNs: s.alignedStart(l.WindowNs)}
	if c.live {
		old := s.limits.at(c.e.limit())
		w2 := readSlidingCounter(c.e.state()).roll(s.nowNs, old.WindowNs)
		if old.WindowNs == l.WindowNs {
			w = w2
		} else {
			w.cur = w2.used(s.nowNs, old.WindowNs)
		}
	}
	grant, ok := admit(op, w.used(s.nowNs, l.WindowNs), d)
	w.cur += grant
	d.ResetMs = s.spanMs(w.idleAtNs(l.WindowNs))
	if !ok {
		d.RetryMs = -1
		if op.canFit() {
			d.RetryMs = s.spanMs(w.retryAtNs(l, op.want()))
		}
	}
	return nextState{uint64(w.startNs), uint64(w.prev), uint64(w.cur)}
}
