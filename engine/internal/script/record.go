package script

import (
	"math"

	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/unitlog"
)

// shapes is the kind of value that a script keeps under its key. Scripts of one shape may share a key, as in Redis.
// Scripts of other shapes answer WrongType.
type shapes uint8

const (
	noShape       shapes = iota
	shapeNumber          // a double
	shapeCount           // a whole number
	shapeBucket          // doubles: tokens, and the time of their refill
	shapeThrottle        // hits, and in ms the expiry of the hits and of the block
	shapeSliding         // previous count, its expiry in ms, current count
	shapeText            // a byte string that is not a count; see text

	// These shapes are for scripts that accept more than one shape.
	shapeString // a count or a text
	shapeAny    // any value; a script sees no key if the value is not a string
)

// has reports whether x includes the shape of a record.
func (x shapes) has(record shapes) bool {
	return x == record || x == shapeAny || x == shapeString && (record == shapeCount || record == shapeText)
}

// single reports whether a run stores x as the shape of its record. Scripts with any other shape set it
// themselves.
func (x shapes) single() bool { return x != shapeText && x != shapeString && x != shapeAny }

// accepts reports whether a script that accepts the shapes x can run on a record of the given shape: it returns
// Accepted or the refusal.
func (x shapes) accepts(record shapes) Refusal {
	switch {
	case x.has(record):
		return Accepted
	case x == shapeCount && record == shapeText:
		return NotInteger
	}
	return WrongType
}

// Record is the state of a key that scripts keep: some words, which are whole numbers or the bits of doubles, and a
// Redis expiry.
//
//	shape(8) words(3x8) expires(8)
type Record struct {
	shape     shapes
	words     [recordWords]int64
	log       unitlog.Log // shapeLog: stored in place of the words
	expiresMs int64       // limiter time after which the key does not exist; Never: no expiry
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

// IdleAtNs returns when the key of a record expires. It returns arith.Never also for a time beyond the range of limiter
// time.
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

// Redis keeps time in whole milliseconds. A key exists until its expiry has passed: at the very millisecond it still
// exists, with a PTTL of 0.

func (r *Run) nowMs() int64 { return r.nowNs / 1e6 }

// expireMs sets the expiry, as PEXPIRE does. An expiry that is not in the future deletes the key.
func (r *Run) expireMs(ms int64) {
	if ms <= 0 {
		r.live, r.Effect = false, Deleted
		return
	}
	r.Effect = wrote
	r.record.expiresMs = arith.AddNs(r.nowMs(), ms)
}

// pttl returns the answer of PTTL: -2 without a key, -1 without an expiry.
func (r *Run) pttl() int64 {
	if !r.live {
		return -2
	}
	return r.record.LeftMs(r.nowNs)
}

// LeftMs returns the time until the record expires, as Redis counts it. -1 means never.
func (r *Record) LeftMs(nowNs int64) int64 {
	if r.expiresMs == arith.Never {
		return -1
	}
	return max(r.expiresMs-nowNs/1e6, 0)
}

// Scripts calculate with doubles. Every product is converted explicitly, which keeps the compiler from fusing it with a
// sum. A fused operation rounds once instead of twice, on some processors only, so nodes would differ.

func toBits(f float64) int64 {
	if f != f {
		return 0x7ff8 << 48 // processors produce different NaNs
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
