package engine

import "github.com/weir-project/weir/engine/internal/store"

func evaluateFixed(s *store.Store, c *store.Cell, op *Op, d *Decision) outcome {
	var w store.FixedWindow
	if c.Live {
		old := s.Limits.At(c.Entry.Limit())
		if w = store.ReadFixed(c.Entry.State()); old.Is(&op.Limit) {
			c.Known = true
		} else {
			w = carryWindow(s, op, old, w)
		}
	} else {
		w.EndNs = windowEnd(s, op)
	}
	grant, ok := admit(op, w.Used, d)
	w.Used += grant
	if w.Used > 0 {
		d.ResetMs = s.SpanMs(w.EndNs)
	}
	if !ok {
		d.RetryMs = -1
		if op.canFit() {
			d.RetryMs = s.SpanMs(w.EndNs)
		}
	}
	return outcome{uint64(w.EndNs), uint64(w.Used), 0}
}

// windowEnd returns the end of the window that runs now. A FromFirst window begins now.
func windowEnd(s *store.Store, op *Op) int64 {
	wallNs := s.NowNs + s.OffsetNs
	switch op.Limit.Mode {
	case Aligned:
		return alignedStart(s, op.Limit.WindowNs) + op.Limit.WindowNs
	case FromFirst:
		return s.NowNs + op.Limit.WindowNs
	case Forever:
		return Never
	}
	endNs := op.Calendar.EndNs
	if wallNs >= endNs {
		endNs = op.Calendar.NextEndNs
	}
	// A boundary may come late, but never early. Op.Calendar was computed before the decision. If the decision comes
	// after both ends in it, the window lasts one nanosecond.
	return max(endNs-s.OffsetNs, s.NowNs+1)
}

// alignedStart returns when the window around now begins, in limiter time.
func alignedStart(s *store.Store, windowNs int64) int64 {
	into := (s.NowNs + s.OffsetNs) % windowNs
	if into < 0 {
		into += windowNs
	}
	return s.NowNs - into
}

// carryWindow converts a running window to the operation's limit. The count stays. If mode and length are the
// same, the end stays as well. If both limits are FromFirst, the start stays, and an empty window replaces one
// that is then over. Otherwise the window gets the end of a window under the new limit.
func carryWindow(s *store.Store, op *Op, old *Limit, w store.FixedWindow) store.FixedWindow {
	l := &op.Limit
	switch {
	case l.Mode == old.Mode && l.WindowNs == old.WindowNs:
	case l.Mode == FromFirst && old.Mode == FromFirst:
		w.EndNs += l.WindowNs - old.WindowNs
		if w.EndNs <= s.NowNs {
			w = store.FixedWindow{EndNs: windowEnd(s, op)}
		}
	default:
		w.EndNs = windowEnd(s, op)
	}
	return w
}
