package script

import (
	"math"

	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/rule"
)

// A script that keeps a sliding log in a sorted set: one member for each admitted request,
// whose score is the client's time in milliseconds. Clients disagree about the time, so that
// a request may belong before others, and a later window may begin earlier. Redis orders
// members by score, and so does the log here.

// SlidingSet: begin of the window, now, most requests, window; all times in ms.
const SlidingSet ID = 45

// shapeLog has no words: in their place, at logAt, stands a unitlog.Log whose times are in
// ms, and whose records have one unit each.
const shapeLog shapes = 16

const logAt = 8

func isLog(state []byte) bool { return shapes(state[0]) == shapeLog }

// MaxSlidingSetMs bounds the client's time: up to here Lua writes every millisecond in full.
const MaxSlidingSetMs = 99_999_999_999_999

// validSlidingSet reports whether the log can hold what a script brings.
func validSlidingSet(arg *[MaxArgs]float64) bool {
	whole := func(f, low, high float64) bool { return low <= f && f <= high && f == math.Trunc(f) }
	return whole(arg[1], 0, MaxSlidingSetMs) && whole(arg[2], 1, rule.MaxLogUnits) && arg[3] >= 1
}

// slidingSet forgets what is before the window, and adds a request unless there are as many
// as there may be. It answers 1, what is left and 0, or 0, 0 and when the oldest request leaves.
func slidingSet(r *Run) {
	log, nowMs, most := &r.record.log, r.arg[1], r.arg[2]
	r.dropMs = arith.Truncate(math.Floor(r.arg[0]))
	count := log.Units - log.UnitsUntil(r.slab, r.dropMs)
	if left := most - float64(count) - 1; left >= 0 {
		r.addMs, r.Admitted = r.whole(1), true
		r.expireMs(r.whole(3)) // above 0, so that it is no deletion
		r.answers(1, arith.Truncate(left), 0)
		return
	}
	if count < log.Units {
		r.Effect = wrote
	}
	oldestMs := log.TimeOf(r.slab, log.Units-count+1)
	r.answers(0, 0, arith.Truncate(float64(float64(oldestMs)+r.arg[3])-nowMs))
}

func slidingSetBlocked(r *Run, leftMs int64) { r.answers(0, 0, blockedForMs(leftMs)) }

// Grows reports whether the script may take memory for a key that is there.
func (s *Call) Grows() bool { return scripts[s.ID].shape == shapeLog }

// logGrowth is how much memory the log of a run may take, at most.
func (r *Run) logGrowth() int {
	if !r.Admitted || r.record.shape != shapeLog {
		return 0
	}
	return r.record.log.InsertGrowth(r.slab, r.dropMs, r.addMs)
}

// keepLog makes the log what a run left behind.
func (r *Run) keepLog() {
	log := &r.record.log
	log.DropUntil(r.slab, r.dropMs)
	if r.Admitted {
		log.Insert(r.slab, r.addMs)
	}
}
