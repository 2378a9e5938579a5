package engine

import (
	"encoding/binary"
	"math"
)

// A script that keeps a sliding log in a sorted set: one member for each admitted request,
// whose score is the client's time in milliseconds. Clients disagree about the time, so that
// a request may belong before others, and a later window may begin earlier. Redis orders
// members by score, and so does the log here.

// SlidingSet: begin of the window, now, most requests, window; all times in ms.
const SlidingSet ScriptID = 45

// shapeLog has no words: in their place, at scriptLogAt, stands a unitLog whose times are in
// ms, and whose records have one unit each.
const shapeLog scriptShape = 16

const scriptLogAt = 8

func isLog(state []byte) bool { return scriptShape(state[0]) == shapeLog }

// MaxSlidingSetMs bounds the client's time: up to here Lua writes every millisecond in full.
const MaxSlidingSetMs = 99_999_999_999_999

// soundSlidingSet reports whether the log can hold what a script brings.
func soundSlidingSet(arg *[MaxScriptArgs]float64) bool {
	whole := func(f, low, high float64) bool { return low <= f && f <= high && f == math.Trunc(f) }
	return whole(arg[1], 0, MaxSlidingSetMs) && whole(arg[2], 1, MaxLogUnits) && arg[3] >= 1
}

// slidingSet forgets what is before the window, and adds a request unless there are as many
// as there may be. It answers 1, what is left and 0, or 0, 0 and when the oldest request leaves.
func slidingSet(r *scriptRun) {
	log, nowMs, most := &r.record.log, r.arg[1], r.arg[2]
	r.dropMs = Truncate(math.Floor(r.arg[0]))
	count := log.units - log.unitsUntil(r.slab, r.dropMs)
	if left := most - float64(count) - 1; left >= 0 {
		r.addMs, r.admitted = r.whole(1), true
		r.expireMs(r.whole(3)) // above 0, so that it is no deletion
		r.answers(1, Truncate(left), 0)
		return
	}
	if count < log.units {
		r.effect = scriptWrote
	}
	oldestMs := log.timeOf(r.slab, log.units-count+1)
	r.answers(0, 0, Truncate(float64(float64(oldestMs)+r.arg[3])-nowMs))
}

func slidingSetBlocked(r *scriptRun, leftMs int64) { r.answers(0, 0, blockedForMs(leftMs)) }

// Grows reports whether the script may take memory for a key that is there.
func (s *Script) Grows() bool { return scripts[s.ID].shape == shapeLog }

// logGrowth is how much memory the log of a run may take, at most.
func (r *scriptRun) logGrowth() int {
	log := &r.record.log
	switch {
	case !r.admitted || r.record.shape != shapeLog:
		return 0
	case log.lastNs <= r.dropMs:
		return minLogBlock // it is emptied first
	case r.addMs < log.lastNs:
		return maxLogBlock
	}
	return log.growth(r.slab, r.addMs, 1)
}

// keepLog makes the log what a run left behind.
func (r *scriptRun) keepLog() {
	log := &r.record.log
	log.dropUntil(r.slab, r.dropMs)
	if r.admitted {
		log.insert(r.slab, r.addMs)
	}
}

// appendTimes appends the times of a log whose records have a unit each.
func (s *shard) appendTimes(b []byte, log *unitLog) []byte {
	b = binary.AppendVarint(b, log.units)
	last := int64(0)
	for r := range log.all(&s.slab) {
		b = binary.AppendVarint(b, r.atNs-last)
		last = r.atNs
	}
	return b
}

// loadTimes is the inverse of appendTimes.
func (s *shard) loadTimes(d *decoder) (log unitLog) {
	at := int64(0)
	for left := d.within(0, MaxLogUnits); left > 0 && !d.bad; left-- {
		if at += d.within(0, MaxSlidingSetMs-at); !d.bad {
			log.append(&s.slab, at, 1)
		}
	}
	d.bad = d.bad || log.units == 0
	return log
}
