package arith

import (
	"cmp"
	"math"
	"math/bits"
)

// Uint128 is an unsigned 128-bit integer.
//
// It is wide enough for the engine, with u = MaxUnits = 2^53 and p = MaxWindowNs < 2^55:
//
//   - The largest level of a bucket is (u+1)*p < 2^109, and the largest debt adds p*u < 2^108.
//   - Limiter time below 2^62, times a rate of at most u units, is below 2^115.
//   - The sum of both is below 2^116. Under most limits it is below 2^96.
//   - The weighted count of a window is at most 2*u*p.
type Uint128 struct{ Hi, Lo uint64 }

// Mul returns a*b.
func Mul(a, b uint64) Uint128 {
	hi, lo := bits.Mul64(a, b)
	return Uint128{hi, lo}
}

// Add returns a+b; the sum must fit.
func (a Uint128) Add(b Uint128) Uint128 {
	lo, carry := bits.Add64(a.Lo, b.Lo, 0)
	hi, _ := bits.Add64(a.Hi, b.Hi, carry)
	return Uint128{hi, lo}
}

// Sub returns a-b; a must not be less than b.
func (a Uint128) Sub(b Uint128) Uint128 {
	lo, borrow := bits.Sub64(a.Lo, b.Lo, 0)
	hi, _ := bits.Sub64(a.Hi, b.Hi, borrow)
	return Uint128{hi, lo}
}

// SubFloor returns a-b, or zero when that is negative.
func (a Uint128) SubFloor(b Uint128) Uint128 {
	if a.Less(b) {
		return Uint128{}
	}
	return a.Sub(b)
}

// Less reports whether a is less than b.
func (a Uint128) Less(b Uint128) bool {
	return a.Hi < b.Hi || a.Hi == b.Hi && a.Lo < b.Lo
}

// Compare returns -1, 0 or 1: whether a is less than b, equal or greater.
func (a Uint128) Compare(b Uint128) int {
	return cmp.Or(cmp.Compare(a.Hi, b.Hi), cmp.Compare(a.Lo, b.Lo))
}

func (a Uint128) isZero() bool { return a.Hi|a.Lo == 0 }

// Div returns a/d rounded down. big reports whether the quotient exceeds 64 bits; q is then the
// largest 64-bit number.
func (a Uint128) Div(d uint64) (q uint64, big bool) {
	if a.Hi >= d {
		return ^uint64(0), true
	}
	if a.Hi == 0 {
		return a.Lo / d, false
	}
	q, _ = bits.Div64(a.Hi, a.Lo, d)
	return q, false
}

// DivUp returns a/d rounded up, at most the largest signed 64-bit number.
func (a Uint128) DivUp(d uint64) int64 {
	q, big := a.Add(Uint128{0, d - 1}).Div(d)
	if big || q > uint64(math.MaxInt64) {
		return math.MaxInt64
	}
	return int64(q)
}

// Mod returns the remainder of a/d.
func (a Uint128) Mod(d uint64) uint64 { return bits.Rem64(a.Hi, a.Lo, d) }

// Min returns the lesser of a and b.
func (a Uint128) Min(b Uint128) Uint128 {
	if b.Less(a) {
		return b
	}
	return a
}

// Floor returns a/d rounded down, at most the largest signed 64-bit number.
func (a Uint128) Floor(d int64) int64 {
	q, big := a.Div(uint64(d))
	if big || q > uint64(math.MaxInt64) {
		return math.MaxInt64
	}
	return int64(q)
}

// NsUp converts a from units of 1/units nanoseconds to nanoseconds, rounded up and at most
// math.MaxInt64.
func (a Uint128) NsUp(units int64) int64 { return a.DivUp(uint64(units)) }

// MsUp converts a from units of 1/units nanoseconds to milliseconds, rounded up and at most
// math.MaxInt64.
func (a Uint128) MsUp(units int64) int64 {
	if a.Hi == 0 && units == 1 {
		return int64(a.Lo/1e6 + min(a.Lo%1e6, 1))
	}
	ns := a.Add(Uint128{0, uint64(units - 1)})
	hi, rest := ns.Hi/uint64(units), ns.Hi%uint64(units)
	lo, _ := bits.Div64(rest, ns.Lo, uint64(units))
	return Uint128{hi, lo}.DivUp(1e6)
}
