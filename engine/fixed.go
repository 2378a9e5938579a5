package engine

import "github.com/weir-project/weir/engine/internal/store"

func evaluateFixed(s *store.Store, c *store.Cell, op *Op, d *Decision) outcome {
	var w store.FixedWindow
	if c.Live {
		old := s.Limits.At(c.Entry.Limit())
		if w = store.ReadFixed(c.Entry.State()); old.Is(&op.Limit) {
			c.Known = true
		} else {
			w = carryWindow(&op.Limit, old, w, s.NowNs, s.OffsetNs, op.Calendar)
		}
	} else {
		w.EndNs = windowEnd(&op.Limit, s.NowNs, s.OffsetNs, op.Calendar)
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
	end, used := w.Numbers()
	return outcome{end, used, 0}
}

// windowEnd returns the end of the window that runs at a time. A FromFirst window begins then. ends has the bounds of
// a calendar window.
func windowEnd(l *Limit, nowNs, offsetNs int64, ends *Calendar) int64 {
	switch l.Mode {
	case Aligned:
		return alignedStart(nowNs, offsetNs, l.WindowNs) + l.WindowNs
	case FromFirst:
		return nowNs + l.WindowNs
	case Forever:
		return Never
	}
	endNs := ends.EndNs
	if nowNs+offsetNs >= endNs {
		endNs = ends.NextEndNs
	}
	// A boundary may come late, but never early. Op.Calendar was computed before the decision. If the decision comes
	// after both ends in it, the window lasts one nanosecond.
	return max(endNs-offsetNs, nowNs+1)
}

// alignedStart returns when the window around a time begins, in limiter time.
func alignedStart(nowNs, offsetNs, windowNs int64) int64 {
	into := (nowNs + offsetNs) % windowNs
	if into < 0 {
		into += windowNs
	}
	return nowNs - into
}

// carryWindow converts a running window to the limit l at a time. The count stays. If mode and length are the same,
// the end stays as well. If both limits are FromFirst, the start stays, and an empty window replaces one that is then
// over. Otherwise the window gets the end of a window under the new limit. The units at which an event was written are
// a smaller share of a larger limit, so its thresholds above them are reported.
func carryWindow(
	l, old *Limit, w store.FixedWindow, nowNs, offsetNs int64, ends *Calendar,
) store.FixedWindow {
	if l.Max > old.Max {
		w.Told = uint8(int64(w.Told) * old.Max / l.Max)
	}
	switch {
	case l.Mode == old.Mode && l.WindowNs == old.WindowNs:
	case l.Mode == FromFirst && old.Mode == FromFirst:
		w.EndNs += l.WindowNs - old.WindowNs
		if w.EndNs <= nowNs {
			w = store.FixedWindow{EndNs: windowEnd(l, nowNs, offsetNs, ends)}
		}
	default:
		w.EndNs = windowEnd(l, nowNs, offsetNs, ends)
	}
	return w
}
