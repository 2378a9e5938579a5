package engine

import "math/bits"

// wide is an unsigned 128-bit integer.
//
// Why it is enough: with u = MaxUnits = 2^53 and p = MaxWindowNs < 2^55, the
// largest bucket level is (u+1)*p < 2^109, the largest debt adds p*u < 2^108, a
// limiter time below 2^62 times a rate of at most u units is below 2^115, and
// their sum stays below 2^116 (and below 2^96 under most limits, see bucketLen). A window's weighted count is at most 2*u*p.
type wide struct{ hi, lo uint64 }

func wideMul(a, b uint64) wide {
	hi, lo := bits.Mul64(a, b)
	return wide{hi, lo}
}

func (a wide) add(b wide) wide {
	lo, carry := bits.Add64(a.lo, b.lo, 0)
	hi, _ := bits.Add64(a.hi, b.hi, carry)
	return wide{hi, lo}
}

// sub returns a-b; a must not be less than b.
func (a wide) sub(b wide) wide {
	lo, borrow := bits.Sub64(a.lo, b.lo, 0)
	hi, _ := bits.Sub64(a.hi, b.hi, borrow)
	return wide{hi, lo}
}

// subFloor returns a-b, or zero when that is negative.
func (a wide) subFloor(b wide) wide {
	if a.less(b) {
		return wide{}
	}
	return a.sub(b)
}

func (a wide) less(b wide) bool {
	return a.hi < b.hi || a.hi == b.hi && a.lo < b.lo
}

func (a wide) isZero() bool { return a.hi|a.lo == 0 }

// div returns a/d rounded down, and whether the quotient exceeds 64 bits (it is
// then the largest 64-bit number).
func (a wide) div(d uint64) (q uint64, big bool) {
	if a.hi >= d {
		return ^uint64(0), true
	}
	if a.hi == 0 {
		return a.lo / d, false
	}
	q, _ = bits.Div64(a.hi, a.lo, d)
	return q, false
}

// divUp returns a/d rounded up, at most the largest signed 64-bit number.
func (a wide) divUp(d uint64) int64 {
	q, big := a.add(wide{0, d - 1}).div(d)
	if big || q > uint64(Never) {
		return Never
	}
	return int64(q)
}

// mod returns the remainder of a/d.
func (a wide) mod(d uint64) uint64 { return bits.Rem64(a.hi, a.lo, d) }

func (a wide) min(b wide) wide {
	if b.less(a) {
		return b
	}
	return a
}

// floor returns a/d rounded down, at most the largest signed 64-bit number.
func (a wide) floor(d int64) int64 {
	q, big := a.div(uint64(d))
	if big || q > uint64(Never) {
		return Never
	}
	return int64(q)
}

// nsUp reads a as 1/units nanoseconds and rounds up to whole ones, saturating.
func (a wide) nsUp(units int64) int64 { return a.divUp(uint64(units)) }

// msUp reads a as 1/units nanoseconds and rounds up to milliseconds, saturating.
func (a wide) msUp(units int64) int64 {
	if a.hi == 0 && units == 1 {
		return int64(a.lo/1e6) + oneIf(a.lo%1e6 != 0)
	}
	ns := a.add(wide{0, uint64(units - 1)})
	hi, rest := ns.hi/uint64(units), ns.hi%uint64(units)
	lo, _ := bits.Div64(rest, ns.lo, uint64(units))
	return wide{hi, lo}.divUp(1e6)
}

func oneIf(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// nsToMs rounds a span up to milliseconds; Never becomes -1.
func nsToMs(ns int64) int64 {
	if ns == Never {
		return -1
	}
	return ns/1e6 + oneIf(ns%1e6 != 0)
}

// addNs returns an instant moved by a span, at most Never.
func addNs(at, span int64) int64 {
	if span > Never-at {
		return Never
	}
	return at + span
}
