package store

import "github.com/weir-project/weir/engine/internal/arith"

// FixedWindow is the state of a fixed window, the end and the units used: endNs(8) used(7) told(1). No window has more
// units than seven bytes can count.
type FixedWindow struct {
	EndNs, Used int64
	Told        uint8 // the highest threshold in percent that an event of this window reports; 0: none
}

// toldShift is the position of Told above Used.
const toldShift = 56

// ReadFixed decodes the state of a fixed window.
func ReadFixed(b []byte) FixedWindow { return FixedWindowOf(le.Uint64(b), le.Uint64(b[8:])) }

// FixedWindowOf decodes the two numbers of a state.
func FixedWindowOf(end, used uint64) FixedWindow {
	return FixedWindow{int64(end), int64(used & (1<<toldShift - 1)), uint8(used >> toldShift)}
}

// Numbers returns the two numbers of the state.
func (w FixedWindow) Numbers() (end, used uint64) {
	return uint64(w.EndNs), uint64(w.Used) | uint64(w.Told)<<toldShift
}

// Write stores the window in a state.
func (w FixedWindow) Write(b []byte) {
	end, used := w.Numbers()
	le.PutUint64(b, end)
	le.PutUint64(b[8:], used)
}

// Unused reports whether the window is the same as none.
func (w FixedWindow) Unused() bool { return w.Used == 0 && w.Told == 0 }

// idleAtNs returns the end of the window. An unused window is idle.
func (w FixedWindow) idleAtNs() int64 {
	if w.Unused() {
		return 0
	}
	return w.EndNs
}

// SlidingCounter is the state of a sliding window counter, with the current window and the window before it:
// startNs(8) prev(8) cur(8).
type SlidingCounter struct{ StartNs, Prev, Cur int64 }

// ReadSlidingCounter decodes the state of a sliding window counter.
func ReadSlidingCounter(b []byte) SlidingCounter {
	return SlidingCounter{int64(le.Uint64(b)), int64(le.Uint64(b[8:])), int64(le.Uint64(b[16:]))}
}

func (w SlidingCounter) write(b []byte) {
	le.PutUint64(b, uint64(w.StartNs))
	le.PutUint64(b[8:], uint64(w.Prev))
	le.PutUint64(b[16:], uint64(w.Cur))
}

// Roll returns the state for the window that contains now. The state must not be idle. Its window then contains
// now, or the next window does.
func (w SlidingCounter) Roll(nowNs, windowNs int64) SlidingCounter {
	if nowNs-w.StartNs < windowNs {
		return w
	}
	return SlidingCounter{w.StartNs + windowNs, w.Cur, 0}
}

// IdleAtNs returns when the counts have no weight any more.
func (w SlidingCounter) IdleAtNs(windowNs int64) int64 {
	switch {
	case w.Cur > 0:
		return w.StartNs + 2*windowNs
	case w.Prev > 0:
		return w.StartNs + windowNs
	}
	return 0
}

// weight returns the weight of the previous window, times the window's length.
func (w SlidingCounter) weight(nowNs, windowNs int64) arith.Uint128 {
	return arith.Mul(uint64(w.Prev), uint64(w.StartNs+windowNs-nowNs))
}

// Used returns the estimated units in the sliding window, rounded up. Costs are whole units, so rounding up
// changes no decision.
func (w SlidingCounter) Used(nowNs, windowNs int64) int64 {
	return w.Cur + w.weight(nowNs, windowNs).DivUp(uint64(windowNs))
}
