package script

import (
	"math"

	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/rule"
)

// This script keeps a sliding log in a sorted set. Each admitted request is a member, and its score is the client's
// time in milliseconds. The clocks of clients differ. So the time of a request may be before that of earlier requests,
// and its window may begin before theirs. Redis orders members by score, and this log does the same.

// SlidingSet has the arguments begin of the window, now, most requests, window. All times are in ms.
const SlidingSet ID = 45

// shapeLog has no words. A unitlog.Log at logAt takes their place. Its times are in ms, and each of its records has one
// unit.
const shapeLog shapes = 16

const logAt = 8

func isLog(state []byte) bool { return shapes(state[0]) == shapeLog }

// Members returns the number of members of a record that is a sorted set, and 0 for any other record.
func (r *Record) Members() int64 {
	switch r.shape {
	case shapeLog:
		return r.log.Units
	case shapeSet:
		return r.words[0] / hitBytes
	}
	return 0
}

// IsList reports whether a record is a list.
func (r *Record) IsList() bool { return r.shape == shapeList }

// MaxSlidingSetMs bounds the client's time. Up to this value Lua writes every millisecond with all digits.
const MaxSlidingSetMs = 99_999_999_999_999

// validSlidingSet reports whether the log can represent the arguments.
func validSlidingSet(arg *[MaxArgs]float64) bool {
	whole := func(f, low, high float64) bool { return low <= f && f <= high && f == math.Trunc(f) }
	return whole(arg[1], 0, MaxSlidingSetMs) && whole(arg[2], 1, rule.MaxLogUnits) && arg[3] >= 1
}

// slidingSet drops the requests before the window, and adds a request if the limit allows it. It then answers 1, the
// remaining requests and 0. A denial answers 0, 0 and the time until the oldest request leaves the window.
func slidingSet(r *Run) {
	log, nowMs, most := &r.record.log, r.arg[1], r.arg[2]
	r.dropMs = arith.Truncate(math.Floor(r.arg[0]))
	count := log.Units - log.UnitsUntil(r.slab, r.dropMs)
	if left := most - float64(count) - 1; left >= 0 {
		r.addMs, r.Admitted = r.whole(1), true
		r.expireMs(r.whole(3)) // positive, so it does not delete the key
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

// Grows reports whether the script may allocate memory for an existing key.
func (s *Call) Grows() bool { return s.ID == SlidingSet || s.ID == MovingTake || s.ID == AsyncTake }

// logGrowth returns the most bytes that the log of a run may need in addition.
func (r *Run) logGrowth() int {
	if !r.Admitted || r.record.shape != shapeLog {
		return 0
	}
	return r.record.log.InsertGrowth(r.slab, r.dropMs, r.addMs)
}

// keepLog applies the changes of a run to the log.
func (r *Run) keepLog() {
	log := &r.record.log
	log.DropUntil(r.slab, r.dropMs)
	if r.Admitted {
		log.Insert(r.slab, r.addMs)
	}
}
