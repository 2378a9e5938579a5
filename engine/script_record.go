package engine

import "math"

// scriptShape is what kind of value a script keeps under its key. Scripts of one
// shape may share a key, as in Redis; others answer WrongType.
type scriptShape uint8

const (
	noShape       scriptShape = iota
	shapeNumber               // a double
	shapeCount                // a whole number
	shapeBucket               // doubles: tokens, and when they were refilled
	shapeThrottle             // hits, their expiry and that of a block in ms
	shapeSliding              // the count before, its expiry in ms, the count now
	shapeText                 // a byte string that is no count; see text

	// What a script may find that knows more than one shape.
	shapeString // a count or a text
	shapeAny    // whatever there is, which is absent for the script if it is no string
)

// has reports whether a record of another shape is one of these.
func (x scriptShape) has(record scriptShape) bool {
	return x == record || x == shapeAny || x == shapeString && (record == shapeCount || record == shapeText)
}

// single reports whether it is the shape that a script leaves behind, and not one of several.
// A script that knows several, or keeps texts, says itself which it leaves.
func (x scriptShape) single() bool { return x != shapeText && x != shapeString && x != shapeAny }

// accepts says what comes of a script that knows these shapes on a record of another.
func (x scriptShape) accepts(record scriptShape) Status {
	switch {
	case x.has(record):
		return OK
	case x == shapeCount && record == shapeText:
		return NotInteger
	}
	return WrongType
}

// scriptRecord is the state of a key that scripts keep: some words, whole numbers or
// the bits of doubles, and a Redis expiry.
//
//	shape(8) words(3x8) expires(8)
type scriptRecord struct {
	shape     scriptShape
	words     [scriptWords]int64
	log       unitLog // shapeLog: takes the place of the words
	expiresMs int64   // limiter time after which the key is gone; Never: no expiry
}

const (
	scriptWords     = 3
	scriptRecordLen = 8 + scriptWords*8 + 8
)

func readScriptRecord(b []byte) (r scriptRecord) {
	if r.shape = scriptShape(b[0]); r.shape == shapeLog {
		r.log = readLog(b[scriptLogAt:])
	}
	for i := range r.words {
		r.words[i] = int64(le.Uint64(b[8+8*i:]))
	}
	r.expiresMs = int64(le.Uint64(b[scriptRecordLen-8:]))
	return r
}

// scriptIdleNs is when the key of a record is gone; Never also for what limiter time
// does not reach.
func scriptIdleNs(b []byte) int64 {
	if ms := int64(le.Uint64(b[scriptRecordLen-8:])); ms < Never/1e6-1 {
		return (ms + 1) * 1e6
	}
	return Never
}

func (r *scriptRecord) write(b []byte) {
	le.PutUint64(b, uint64(r.shape))
	for i, w := range r.words {
		le.PutUint64(b[8+8*i:], uint64(w))
	}
	if r.shape == shapeLog {
		r.log.write(b[scriptLogAt:])
	}
	le.PutUint64(b[scriptRecordLen-8:], uint64(r.expiresMs))
}

// Redis keeps time in whole milliseconds, and a key is there until its expiry has
// passed: at the very millisecond it still is, with a PTTL of 0.

func (r *scriptRun) nowMs() int64 { return r.nowNs / 1e6 }

// expireMs sets the expiry, as PEXPIRE does; a key is deleted by one that is not in
// the future.
func (r *scriptRun) expireMs(ms int64) {
	if ms <= 0 {
		r.live, r.effect = false, scriptDeleted
		return
	}
	r.effect = scriptWrote
	r.record.expiresMs = addNs(r.nowMs(), ms)
}

// pttl answers as PTTL does: -2 without a key, -1 without an expiry.
func (r *scriptRun) pttl() int64 {
	if !r.live {
		return -2
	}
	return r.record.leftMs(r.nowNs)
}

// leftMs is the time until the record expires, as Redis counts it; -1: never.
func (r *scriptRecord) leftMs(nowNs int64) int64 {
	if r.expiresMs == Never {
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

// secondsToMs turns whole seconds into milliseconds, at most Never.
func secondsToMs(s float64) int64 {
	if ms := float64(s * 1e3); ms < 1<<62 {
		return Truncate(ms)
	}
	return Never
}

// Truncate converts a double to the integer that Redis answers for it: truncated towards
// zero, or the least 64-bit integer if the value does not fit. Go leaves the latter to the
// processor, so no other function may convert a double to an integer.
func Truncate(f float64) int64 {
	if f >= -1<<63 && f < 1<<63 {
		return int64(f)
	}
	return math.MinInt64
}
