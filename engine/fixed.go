package engine

// A fixed window keeps where it ends and what was used: endNs(8) used(8).
type fixedWindow struct{ endNs, used int64 }

func readFixed(b []byte) fixedWindow {
	return fixedWindow{int64(le.Uint64(b)), int64(le.Uint64(b[8:]))}
}

func (w fixedWindow) write(b []byte) {
	le.PutUint64(b, uint64(w.endNs))
	le.PutUint64(b[8:], uint64(w.used))
}

// idleAtNs is the window's end; an unused window is idle.
func (w fixedWindow) idleAtNs() int64 {
	if w.used == 0 {
		return 0
	}
	return w.endNs
}

func (s *shard) nextFixed(c *cell, op *Op, d *Decision) nextState {
	var w fixedWindow
	if c.live {
		old := s.limits.at(c.e.limit())
		if w = readFixed(c.e.state()); old.Is(&op.Limit) {
			c.known = true
		} else {
			w = s.carryWindow(op, old, w)
		}
	} else {
		w.endNs = s.windowEnd(op)
	}
	grant, ok := admit(op, w.used, d)
	w.used += grant
	if w.used > 0 {
		d.ResetMs = s.spanMs(w.endNs)
	}
	if !ok {
		d.RetryMs = -1
		if op.canFit() {
			d.RetryMs = s.spanMs(w.endNs)
		}
	}
	return nextState{uint64(w.endNs), uint64(w.used), 0}
}

// windowEnd is where the window that begins or runs now ends.
func (s *shard) windowEnd(op *Op) int64 {
	wallNs := s.nowNs + s.offsetNs
	switch op.Limit.Mode {
	case Aligned:
		return s.alignedStart(op.Limit.WindowNs) + op.Limit.WindowNs
	case FromFirst:
		return s.nowNs + op.Limit.WindowNs
	case Forever:
		return Never
	}
	endNs := op.Calendar.EndNs
	if wallNs >= endNs {
		endNs = op.Calendar.NextEndNs
	}
	// A boundary may come late, never early: a window that seems to be over when it
	// begins (its request was on the way for longer than a window) lasts a moment.
	return max(endNs-s.offsetNs, s.nowNs+1)
}

// alignedStart is where the window around now begins, in limiter time.
func (s *shard) alignedStart(windowNs int64) int64 {
	into := (s.nowNs + s.offsetNs) % windowNs
	if into < 0 {
		into += windowNs
	}
	return s.nowNs - into
}

// carryWindow returns what a running window means under the operation's limit.
// The same kind and length keep its end; another keeps the count and gets a new
// end, and a window that follows the first request keeps its start.
func (s *shard) carryWindow(op *Op, old *Limit, w fixedWindow) fixedWindow {
	l := &op.Limit
	switch {
	case l.Mode == old.Mode && l.WindowNs == old.WindowNs:
	case l.Mode == FromFirst && old.Mode == FromFirst:
		w.endNs += l.WindowNs - old.WindowNs
		if w.endNs <= s.nowNs {
			w = fixedWindow{endNs: s.windowEnd(op)}
		}
	default:
		w.endNs = s.windowEnd(op)
	}
	return w
}
