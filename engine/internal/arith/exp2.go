package arith

import (
	"math"
	"math/bits"
)

// Exp2 returns the double nearest to 2^y. The caller must pass a y of at least -1 that is a
// multiple of 2^-53. For every positive double x, x-1 is such a y. The functions math.Exp2 and
// math.Pow are not correctly rounded, and their results differ between processors.
func Exp2(y float64) float64 {
	if y >= 1024 {
		return math.Inf(1)
	}
	n := Truncate(math.Ldexp(y, exp2InBits))
	whole, fraction := n>>exp2InBits, uint64(n&(1<<exp2InBits-1))
	if fraction == 0 {
		return math.Ldexp(1, int(whole))
	}
	return math.Ldexp(float64(exp2Mantissa(fraction<<(64-exp2InBits))), int(whole)-mantissaBits)
}

const (
	exp2InBits   = 53
	mantissaBits = 52 // of a double, without the implicit leading 1
)

// exp2Ln2 is the natural logarithm of 2 in units of 2^-128, rounded down.
var exp2Ln2 = Uint128{0xb17217f7d1cf79ab, 0xc9e3b39803f2f6af}

// exp2Mantissa returns 2^(fraction/2^64), rounded, in units of 2^-mantissaBits. It adds up
// the series of exp(x), x = fraction/2^64·ln 2, in units of 2^-127.
//
// The error of the sum is below 2^-120. For a double y, 2^y is at least 2^-113 away from the
// middle between two doubles (Lefèvre and Muller, "Worst cases for correct rounding of the
// elementary functions in double precision"). So the sum and 2^y round to the same double.
func exp2Mantissa(fraction uint64) uint64 {
	const one = 1 << 63
	x := exp2Ln2.mulHigh(Uint128{fraction, 0})
	term := Uint128{one, 0}
	sum := term
	for i := uint64(1); !term.isZero(); i++ { // below 40 terms: x is below 0.7
		term = term.mulHigh(x).quotient(i)
		sum = sum.Add(term)
	}
	const half = 1 << (63 - mantissaBits - 1)
	return sum.Add(Uint128{half, 0}).Hi >> (63 - mantissaBits)
}

// mulHigh returns the upper 128 bits of a product. The result is up to 2 below the exact value.
func (a Uint128) mulHigh(b Uint128) Uint128 {
	left, right := Mul(a.Hi, b.Lo), Mul(a.Lo, b.Hi)
	return Mul(a.Hi, b.Hi).Add(Uint128{0, left.Hi}).Add(Uint128{0, right.Hi})
}

// quotient returns a/d rounded down.
func (a Uint128) quotient(d uint64) Uint128 {
	lo, _ := bits.Div64(a.Hi%d, a.Lo, d)
	return Uint128{a.Hi / d, lo}
}

// Truncate converts a double to the integer that Redis answers for it: truncated towards
// zero, or the least 64-bit integer if the value does not fit. The conversion int64(f) of a
// value that does not fit depends on the processor. So no other function may convert a double
// to an integer.
func Truncate(f float64) int64 {
	if f >= -1<<63 && f < 1<<63 {
		return int64(f)
	}
	return math.MinInt64
}
