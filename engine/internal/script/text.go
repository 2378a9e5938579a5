package script

import (
	"strconv"

	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/rule"
)

// This file has the Redis commands on strings, and the scripts of libraries that compare and swap bytes which only
// their clients interpret (Bucket4j, throttled). A string that is a whole number is kept as a count. Counting scripts
// and commands share it, as in Redis.

// These are the scripts on strings. ms is a time to live from now.
const (
	TextSet      ID = 27 + iota // Values: value; how, ms
	TextLook                    // GET, which sees no key if the value is not a string
	TextTake                    // GETDEL
	TextTouch                   // how, ms: GETEX
	TextExpire                  // ms, how: EXPIRE with conditions, and PERSIST
	TextAppend                  // Values: more; most bytes
	TextSwap                    // Values: expected, value; how, ms
	TextDrop                    // Values: expected; deletes an equal value
	TextAdd                     // as TextSet, with another reply
	TextSwapLive                // as TextSwap, with another reply if no value exists
)

// These bits modify scripts on strings. how is the sum of some of them.
const (
	TextIfAbsent    = 1 << iota // NX
	TextIfPresent               // XX
	TextKeepExpiry              // KEEPTTL
	TextExpireMs                // the time to live is ms
	TextPersist                 // remove the expiry
	TextGetOld                  // answer the previous value
	TextIfNoExpiry              // NX of EXPIRE
	TextIfExpiry                // XX of EXPIRE
	TextIfLater                 // GT: the new expiry is later than the old one
	TextIfSooner                // LT
	numTextHow      = iota
	maxIntegerBytes = len("-9223372036854775808")
)

// TextsOf returns how many byte strings a script takes.
func (id ID) TextsOf() int {
	switch id {
	case TextSet, TextAppend, TextDrop, TextAdd:
		return 1
	case TextSwap, TextSwapLive:
		return 2
	}
	return 0
}

func (r *Run) how(i int) int64 { return r.whole(i) & (1<<numTextHow - 1) }

// value returns the string under the key. The result is valid until the key changes.
func (r *Run) value() []byte {
	if r.record.shape == shapeText {
		return r.kept
	}
	return strconv.AppendInt(r.digits[:0], r.count(), 10)
}

// is reports whether the key exists and has this value.
func (r *Run) is(value []byte) bool { return r.live && string(r.value()) == string(value) }

// write is SET: it stores the value. keepExpiry keeps the current expiry, otherwise the key has none.
func (r *Run) write(value []byte, keepExpiry bool) {
	expiresMs := arith.Never
	if keepExpiry && r.live {
		expiresMs = r.record.expiresMs
	}
	n, whole := wholeNumber(value)
	r.record = Record{shape: shapeCount}
	if r.put(n); !whole {
		r.record = Record{shape: shapeText}
		r.fresh, r.rewrites = value, true
	}
	r.record.expiresMs = expiresMs
}

// wholeNumber parses a string that is kept as a count: the numbers that INCR accepts in Redis, within the integers that
// doubles represent exactly.
func wholeNumber(b []byte) (n int64, ok bool) {
	if len(b) == 0 || len(b) > maxIntegerBytes {
		return 0, false
	}
	n, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil || n < -rule.MaxUnits || n > rule.MaxUnits {
		return 0, false
	}
	var digits [maxIntegerBytes]byte
	return n, string(strconv.AppendInt(digits[:0], n, 10)) == string(b)
}

// answersValue answers as GET and PTTL do: a number, the remaining time (-2: no key), and whether the value is a byte
// string instead.
func (r *Run) answersValue() {
	r.Admitted = true
	isText := r.live && r.record.shape == shapeText
	if isText {
		r.Said = string(r.kept)
		r.answers(0, r.pttl(), 1)
		return
	}
	r.answers(r.count(), r.pttl())
}

// textBlocked refuses a blocked key. The client chooses the form of the value, so weir cannot write a denial that
// this client would understand.
func textBlocked(r *Run, _ int64) { r.status = KeyBlocked }

// valueBlocked is textBlocked for a key with a byte string, and countBlocked for any other key.
func valueBlocked(r *Run, leftMs int64) {
	if r.live && r.record.shape == shapeText {
		r.status = KeyBlocked
		return
	}
	countBlocked(r, leftMs)
}

func textSet(r *Run) {
	how := r.how(0)
	if how&TextGetOld != 0 {
		r.answersValue()
	}
	r.Admitted = true
	if how&TextIfAbsent != 0 && r.live || how&TextIfPresent != 0 && !r.live {
		return
	}
	r.Answer[3] = 1
	r.set(r.script.Values[0], how, r.whole(1))
}

// set writes a value with the expiry that how selects. An expiry in the past deletes the key.
func (r *Run) set(value []byte, how, ms int64) {
	r.write(value, how&TextKeepExpiry != 0)
	switch {
	case how&TextExpireMs == 0:
	case ms < 0:
		r.live, r.Effect = false, Deleted
	default:
		r.record.expiresMs = arith.AddNs(r.nowMs(), ms)
	}
}

func textTake(r *Run) {
	if r.answersValue(); r.live {
		r.live, r.Effect = false, Deleted
	}
}

func textTouch(r *Run) {
	r.answersValue()
	switch how := r.how(0); {
	case !r.live:
	case how&TextPersist != 0:
		r.persist()
	case how&TextExpireMs != 0:
		r.expireMs(r.whole(1))
	}
}

// persist removes the expiry, and reports whether one existed.
func (r *Run) persist() bool {
	if !r.live || r.record.expiresMs == arith.Never {
		return false
	}
	r.Effect, r.record.expiresMs = wrote, arith.Never
	return true
}

// textExpire answers whether the expiry was changed.
func textExpire(r *Run) {
	r.Admitted = true
	how, ms := r.how(1), r.whole(0)
	if how&TextPersist != 0 {
		r.answers(arith.OneIf(r.persist()))
		return
	}
	if !r.live {
		return
	}
	before, after := r.record.expiresMs, arith.AddNs(r.nowMs(), max(ms, -r.nowMs()))
	has := before != arith.Never
	switch {
	case how&TextIfNoExpiry != 0 && has, how&TextIfExpiry != 0 && !has,
		how&TextIfLater != 0 && (!has || after <= before), how&TextIfSooner != 0 && has && after >= before:
		return
	}
	r.answers(1)
	r.expireMs(ms)
}

// textAppend answers the new length.
func textAppend(r *Run) {
	r.Admitted = true
	var before []byte
	if r.live {
		before = r.value()
	}
	more := r.script.Values[0]
	if n := int64(len(before) + len(more)); n > min(r.whole(0), MaxValueBytes) {
		r.status = ValueTooLong
		return
	}
	value := append(append(make([]byte, 0, len(before)+len(more)), before...), more...)
	r.answers(int64(len(value)))
	if len(more) > 0 || !r.live {
		r.write(value, true)
	}
}

// textSwap answers whether the value was the expected one, and whether a value existed.
func textSwap(r *Run) {
	r.Admitted = true
	r.answers(0, arith.OneIf(r.live))
	if r.is(r.script.Values[0]) {
		r.answers(1)
		r.set(r.script.Values[1], r.how(0), r.whole(1))
	}
}

// textDrop answers whether it deleted the key.
func textDrop(r *Run) {
	r.Admitted = true
	if r.is(r.script.Values[0]) {
		r.answers(1)
		r.live, r.Effect = false, Deleted
	}
}
