package engine_test

import (
	"math/big"

	"github.com/weir-project/weir/engine"
)

// fixed is a window with a count. The zero value has no window yet.
type fixed struct {
	limit          engine.Limit
	count          int64
	startNs, endNs int64
}

func (w fixed) algorithm() engine.Algorithm { return engine.FixedWindow }
func (w fixed) remembered() engine.Limit    { return w.limit }
func (w fixed) used(engine.Stamp) int64     { return w.count }
func (w fixed) idle(at engine.Stamp) bool   { return at.NowNs >= w.endNs || w.count == 0 }

// under returns the window now, as it counts under the limit of op.
func (w fixed) under(at engine.Stamp, op *engine.Op) fixed {
	l, old := op.Limit, w.limit
	w.limit = l
	if w.startNs == w.endNs {
		w.startNs, w.endNs = newWindow(at, op)
		return w
	}
	if l.Mode == old.Mode && l.WindowNs == old.WindowNs {
		return w
	}
	if l.Mode == engine.FromFirst && old.Mode == engine.FromFirst && at.NowNs < w.startNs+l.WindowNs {
		w.endNs = w.startNs + l.WindowNs
		return w
	}
	if l.Mode == engine.FromFirst && old.Mode == engine.FromFirst {
		w.count = 0
	}
	w.startNs, w.endNs = newWindow(at, op)
	return w
}

// newWindow returns the window around now that op requests.
func newWindow(at engine.Stamp, op *engine.Op) (startNs, endNs int64) {
	switch op.Limit.Mode {
	case engine.Aligned:
		startNs = alignedStart(at, op.Limit.WindowNs)
		return startNs, startNs + op.Limit.WindowNs
	case engine.FromFirst:
		return at.NowNs, at.NowNs + op.Limit.WindowNs
	case engine.Forever:
		return at.NowNs, engine.Never
	}
	endNs = op.Calendar.EndNs
	if at.NowNs+at.WallOffsetNs >= endNs {
		endNs = op.Calendar.NextEndNs
	}
	// A window whose end has passed lasts one nanosecond from now. So a boundary may be late, but is never early.
	return at.NowNs, max(endNs-at.WallOffsetNs, at.NowNs+1)
}

func (w fixed) take(at engine.Stamp, op *engine.Op) (engine.Decision, rule) {
	w = w.under(at, op)
	leftMs := int64(-1)
	if w.endNs != engine.Never {
		leftMs = msUp(num(w.endNs - at.NowNs))
	}
	n, fits := fitting(op, w.limit.Max-w.count)
	d := engine.Decision{Limit: w.limit.Max}
	if fits {
		d.Allowed = granted(op, n)
		w.count += n
	} else if d.RetryMs = leftMs; op.Cost > w.limit.Max && !op.Partial {
		d.RetryMs = -1
	}
	d.Remaining = max(0, w.limit.Max-w.count)
	if w.count > 0 {
		d.ResetMs = leftMs
	}
	if !fits {
		n = 0
	}
	return taken(d, n, w)
}

func (w fixed) refund(at engine.Stamp, n int64) (engine.Decision, rule) {
	after := w
	after.count -= min(n, w.count)
	return afterRefund(at, n, after)
}

// fitting returns how many units of op fit, and whether that is admitted.
func fitting(op *engine.Op, room int64) (n int64, fits bool) {
	if op.Partial && op.Cost > 0 {
		n = min(op.Cost, max(0, room))
		return n, n > 0
	}
	return op.Cost, op.Cost <= room
}

// twoWindows is the sliding window counter.
type twoWindows struct {
	limit     engine.Limit
	startNs   int64 // the start of the current window
	prev, cur int64
}

func (c twoWindows) algorithm() engine.Algorithm { return engine.SlidingCounter }
func (c twoWindows) remembered() engine.Limit    { return c.limit }

func (c twoWindows) used(at engine.Stamp) int64 {
	return wholeUp(c.rolled(at.NowNs).weighted(at.NowNs))
}

func (c twoWindows) idle(at engine.Stamp) bool {
	c = c.rolled(at.NowNs)
	return c.prev == 0 && c.cur == 0
}

func (c twoWindows) rolled(nowNs int64) twoWindows {
	for nowNs-c.startNs >= c.limit.WindowNs {
		if c.prev == 0 && c.cur == 0 {
			return c
		}
		c.startNs += c.limit.WindowNs
		c.prev, c.cur = c.cur, 0
	}
	return c
}

// weighted returns the sum of both windows' units with their weights, at an instant in the current window.
func (c twoWindows) weighted(nowNs int64) *big.Rat {
	leftNs := c.startNs + c.limit.WindowNs - nowNs
	return plus(num(c.cur), times(num(c.prev), frac(leftNs, c.limit.WindowNs)))
}

// under returns the two windows now, as they count under limit l.
func (c twoWindows) under(at engine.Stamp, l engine.Limit) twoWindows {
	c = c.rolled(at.NowNs)
	if l.WindowNs != c.limit.WindowNs {
		c.cur, c.prev = wholeUp(c.weighted(at.NowNs)), 0
		c.startNs = alignedStart(at, l.WindowNs)
	}
	c.limit = l
	return c
}

func (c twoWindows) take(at engine.Stamp, op *engine.Op) (engine.Decision, rule) {
	c = c.under(at, op.Limit)
	n, fits := fitting(op, c.limit.Max-wholeUp(c.weighted(at.NowNs)))
	d := engine.Decision{Limit: c.limit.Max}
	if fits {
		d.Allowed = granted(op, n)
		c.cur += n
	} else if op.Cost > c.limit.Max && !op.Partial {
		n, d.RetryMs = 0, -1
	} else {
		n, d.RetryMs = 0, c.waitMs(at.NowNs, wanted(op))
	}
	d.Remaining = whole(minus(num(c.limit.Max), c.weighted(at.NowNs)))
	d.ResetMs = c.resetMs(at.NowNs)
	return taken(d, n, c)
}

// waitMs returns the time until n units fit, by trying window after window.
func (c twoWindows) waitMs(nowNs, n int64) int64 {
	for fromNs := nowNs; ; fromNs = c.startNs {
		endNs := c.startNs + c.limit.WindowNs
		room := num(c.limit.Max - c.cur - n)
		if c.prev == 0 && room.Sign() >= 0 {
			return msUp(num(fromNs - nowNs))
		}
		if c.prev > 0 && room.Sign() >= 0 {
			// prev x left/window is small enough from the instant at which leftNs of the window are left.
			leftNs := over(times(room, num(c.limit.WindowNs)), num(c.prev))
			return msUp(minus(greater(minus(num(endNs), leftNs), num(fromNs)), num(nowNs)))
		}
		c = c.rolled(endNs)
	}
}

func (c twoWindows) resetMs(nowNs int64) int64 {
	switch {
	case c.cur > 0:
		return msUp(num(c.startNs + 2*c.limit.WindowNs - nowNs))
	case c.prev > 0:
		return msUp(num(c.startNs + c.limit.WindowNs - nowNs))
	}
	return 0
}

func (c twoWindows) refund(at engine.Stamp, n int64) (engine.Decision, rule) {
	after := c.rolled(at.NowNs)
	fromCur := min(n, after.cur)
	after.cur -= fromCur
	after.prev -= min(n-fromCur, after.prev)
	return afterRefund(at, n, after)
}

// wanted returns how many units must fit before op is admitted at all.
func wanted(op *engine.Op) int64 {
	if op.Partial {
		return min(1, op.Cost)
	}
	return op.Cost
}
