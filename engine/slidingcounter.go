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

func evaluateSlidingCounter(s *store.Store, c *store.Cell, op *Op, d *Decision) outcome {
	l := &op.Limit
	w := store.SlidingCounter{StartNs: alignedStart(s, l.WindowNs)}
	if c.Live {
		old := s.Limits.At(c.Entry.Limit())
		w2 := store.ReadSlidingCounter(c.Entry.State()).Roll(s.NowNs, old.WindowNs)
		if old.WindowNs == l.WindowNs {
			w = w2
		} else {
			w.Cur = w2.Used(s.NowNs, old.WindowNs)
		}
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
