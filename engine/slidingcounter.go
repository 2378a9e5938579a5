package engine

import (
	"math/bits"

	"github.com/weir-project/weir/engine/internal/store"
)

// fallsToNs returns the time from the start of a window until the weight of the previous window's units, prev,
// has fallen to left.
func fallsToNs(prev, left, windowNs int64) int64 {
	if prev <= left {
		return 0
	}
	hi, lo := bits.Mul64(uint64(left), uint64(windowNs))
	q, _ := bits.Div64(hi, lo, uint64(prev)) // below windowNs, for left < prev
	return windowNs - int64(q)
}

// retryAtNs returns when want units fit, in this window or the next.
func retryAtNs(w store.SlidingCounter, l *Limit, want int64) int64 {
	left := l.Max - want
	if w.Cur <= left {
		return w.StartNs + fallsToNs(w.Prev, left-w.Cur, l.WindowNs)
	}
	return w.StartNs + l.WindowNs + fallsToNs(w.Cur, left, l.WindowNs)
}

// carryCounter converts the counts of a limiter that is not idle to the limit l at a time. If the window has another
// length, the estimate becomes the count of the window that runs then.
func carryCounter(l, old *Limit, w store.SlidingCounter, nowNs, offsetNs int64) store.SlidingCounter {
	if w = w.Roll(nowNs, old.WindowNs); old.WindowNs == l.WindowNs {
		return w
	}
	return store.SlidingCounter{
		StartNs: alignedStart(nowNs, offsetNs, l.WindowNs), Cur: w.Used(nowNs, old.WindowNs),
	}
}

func evaluateSlidingCounter(s *store.Store, c *store.Cell, op *Op, d *Decision) outcome {
	l := &op.Limit
	w := store.SlidingCounter{StartNs: alignedStart(s.NowNs, s.OffsetNs, l.WindowNs)}
	if c.Live {
		old := s.Limits.At(c.Entry.Limit())
		w = carryCounter(l, old, store.ReadSlidingCounter(c.Entry.State()), s.NowNs, s.OffsetNs)
	}
	grant, ok := admit(op, w.Used(s.NowNs, l.WindowNs), d)
	w.Cur += grant
	d.ResetMs = s.SpanMs(w.IdleAtNs(l.WindowNs))
	if !ok {
		d.RetryMs = -1
		if op.canFit() {
			d.RetryMs = s.SpanMs(retryAtNs(w, l, op.want()))
		}
	}
	return outcome{uint64(w.StartNs), uint64(w.Prev), uint64(w.Cur)}
}
