package script

import (
	"math"

	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/unitlog"
)

// shapes is what kind of value a script keeps under its key. Scripts of one
// shape may share a key, as in Redis; others answer WrongType.
type shapes uint8

const (
	noShape       shapes = iota
	shapeNumber          // a double
	shapeCount           // a whole number
	shapeBucket          // doubles: tokens, and when they were refilled
	shapeThrottle        // hits, their expiry and that of a block in ms
	shapeSliding         // the count before, its expiry in ms, the count now
	shapeText            // a byte string that is no count; see text

	// What a script may find that knows more than one shape.
	shapeString // a count or a text
	shapeAny    // whatever there is, which is absent for the script if it is no string
)

// has reports whether a record of another shape is one of these.
func (x shapes) has(record shapes) bool {
	return x == record || x == shapeAny || x == shapeString && (record == shapeCount || record == shapeText)
}

// single reports whether it is the shape that a script leaves behind, and not one of several.
// A script that knows several, or keeps texts, says itself which it leaves.
func (x shapes) single() bool { return x != shapeText && x != shapeString && x != shapeAny }

// accepts says what comes of a script that knows these shapes on a record of another.
func (x shapes) accepts(record shapes) Refusal {
	switch {
	case x.has(record):
		return Accepted
	case x == shapeCount && record == shapeText:
		return NotInteger
	}
	return WrongType
}

// Record is the state of a key that scripts keep: some words, whole numbers or
// the bits of doubles, and a Redis expiry.
//
//	shape(8) words(3x8) expires(8)
type Record struct {
	shape     shapes
	words     [recordWords]int64
	log       unitlog.Log // shapeLog: takes the place of the words
	expiresMs int64       // limiter time after which the key is gone; Never: no expiry
}

const (
	recordWords = 3
	StateLen    = 8 + recordWords*8 + 8
)

// ReadRecord reads the record that a run stored in a state.
func ReadRecord(b []byte) (r Record) {
	if r.shape = shapes(b[0]); r.shape == shapeLog {
		r.log = unitlog.Read(b[logAt:])
	}
	for i := range r.words {
		r.words[i] = int64(le.Uint64(b[8+8*i:]))
	}
	r.expiresMs = int64(le.Uint64(b[StateLen-8:]))
	return r
}

// IdleAtNs is when the key of a record is gone; arith.Never also for what limiter time
// does not reach.
func IdleAtNs(b []byte) int64 {
	if ms := int64(le.Uint64(b[StateLen-8:])); ms < arith.Never/1e6-1 {
		return (ms + 1) * 1e6
	}
	return arith.Never
}

func (r *Record) write(b []byte) {
	le.PutUint64(b, uint64(r.shape))
	for i, w := range r.words {
		le.PutUint64(b[8+8*i:], uint64(w))
	}
	if r.shape == shapeLog {
		r.log.Write(b[logAt:])
	}
	le.PutUint64(b[StateLen-8:], uint64(r.expiresMs))
}

// Redis keeps time in whole milliseconds, and a key is there until its expiry has
// passed: at the very millisecond it still is, with a PTTL of 0.

func (r *Run) nowMs() int64 { return r.nowNs / 1e6 }

// expireMs sets the expiry, as PEXPIRE does; a key is deleted by one that is not in
// the future.
func (r *Run) expireMs(ms int64) {
	if ms <= 0 {
		r.live, r.Effect = false, Deleted
		return
	}
	r.Effect = wrote
	r.record.expiresMs = arith.AddNs(r.nowMs(), ms)
}

// pttl answers as PTTL does: -2 without a key, -1 without an expiry.
func (r *Run) pttl() int64 {
	if !r.live {
		return -2
	}
	return r.record.LeftMs(r.nowNs)
}

// LeftMs is the time until the record expires, as Redis counts it; -1: never.
func (r *Record) LeftMs(nowNs int64) int64 {
	if r.expiresMs == arith.Never {
		return -1
	}
	return max(r.expiresMs-nowNs/1e6, 0)
}

// The scripts count in doubles. Every product is converted explicitly, which keeps
// the compiler from fusing it with a sum: fused it would round once instead of twice,
// on some processors only, and nodes would differ.

func toBits(f float64) int64 {
	if f != f {
		return 0x7ff8 << 48 // the NaN that processors make is not the same on all
	}
	return int64(math.Float64bits(f))
}

func fromBits(w int64) float64 { return math.Float64frombits(uint64(w)) }

// secondsToMs turns whole seconds into milliseconds, at most arith.Never.
func secondsToMs(s float64) int64 {
	if ms := float64(s * 1e3); ms < 1<<62 {
		return arith.Truncate(ms)
	}
	return arith.Never
}
