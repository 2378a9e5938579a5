package store

import "github.com/weir-project/weir/engine/internal/arith"

// A fixed window keeps where it ends and what was used: endNs(8) used(8).
type FixedWindow struct{ EndNs, Used int64 }

// ReadFixed reads the state of a fixed window.
func ReadFixed(b []byte) FixedWindow {
	return FixedWindow{int64(le.Uint64(b)), int64(le.Uint64(b[8:]))}
}

func (w FixedWindow) write(b []byte) {
	le.PutUint64(b, uint64(w.EndNs))
	le.PutUint64(b[8:], uint64(w.Used))
}

// idleAtNs is the window's end; an unused window is idle.
func (w FixedWindow) idleAtNs() int64 {
	if w.Used == 0 {
		return 0
	}
	return w.EndNs
}

// The sliding window counter keeps the window it counts in and the one before:
// startNs(8) prev(8) cur(8).
type SlidingCounter struct{ StartNs, Prev, Cur int64 }

// ReadSlidingCounter reads the state of a sliding window counter.
func ReadSlidingCounter(b []byte) SlidingCounter {
	return SlidingCounter{int64(le.Uint64(b)), int64(le.Uint64(b[8:])), int64(le.Uint64(b[16:]))}
}

func (w SlidingCounter) write(b []byte) {
	le.PutUint64(b, uint64(w.StartNs))
	le.PutUint64(b[8:], uint64(w.Prev))
	le.PutUint64(b[16:], uint64(w.Cur))
}

// Roll moves on to the window around now. The state is not idle, so that is this
// window or the next.
func (w SlidingCounter) Roll(nowNs, windowNs int64) SlidingCounter {
	if nowNs-w.StartNs < windowNs {
		return w
	}
	return SlidingCounter{w.StartNs + windowNs, w.Cur, 0}
}

// IdleAtNs is when nothing of the counts weighs any more.
func (w SlidingCounter) IdleAtNs(windowNs int64) int64 {
	switch {
	case w.Cur > 0:
		return w.StartNs + 2*windowNs
	case w.Prev > 0:
		return w.StartNs + windowNs
	}
	return 0
}

// weight is what the previous window still counts, times the window's length.
func (w SlidingCounter) weight(nowNs, windowNs int64) arith.Uint128 {
	return arith.Mul(uint64(w.Prev), uint64(w.StartNs+windowNs-nowNs))
}

// Used is the estimate, rounded up: with whole units to give, that is exact.
func (w SlidingCounter) Used(nowNs, windowNs int64) int64 {
	return w.Cur + w.weight(nowNs, windowNs).DivUp(uint64(windowNs))
}
