package engine

import (
	"math"

	"github.com/weir-project/weir/engine/internal/arith"
)

// A counter keeps its value and its expiry: value(8) expires(8), Never for none.

// incr carries out OpIncr, as Redis 8.8's INCREX: an increment that would leave the
// bounds does nothing, or goes as far as the bound with Saturate.
func (s *shard) incr(c *cell, op *Op, d *Decision) bool {
	in := op.Incr
	value, expiresNs := int64(0), Never
	if c.live {
		st := c.e.state()
		value, expiresNs = int64(le.Uint64(st)), int64(le.Uint64(st[8:]))
	}
	next, ok := in.apply(value)
	if (next < value) != (next-value < 0) {
		d.Status = Overflow
		return false
	}
	d.Allowed, d.Remaining = next-value, next
	if !ok {
		return false
	}
	expiresNs = in.expiry(s.nowNs, expiresNs)
	if expiresNs <= s.nowNs {
		if c.live {
			s.drop(c)
		}
		return true
	}
	if !s.ensure(c, uint8(Counter), stateLens[Counter]) {
		*d = Decision{Status: OutOfMemory}
		return false
	}
	st := c.e.state()
	le.PutUint64(st, uint64(next))
	le.PutUint64(st[8:], uint64(expiresNs))
	c.relink = true
	s.touched(c)
	return true
}

// apply returns the value after the increment; false, and the value as it is, when
// the increment is refused.
func (in *Incr) apply(value int64) (next int64, ok bool) {
	next = value + in.By
	wrapped := (in.By < 0) != (next < value)
	if wrapped && in.By > 0 {
		next = math.MaxInt64
	} else if wrapped {
		next = math.MinInt64
	}
	if in.Saturate {
		return min(max(next, in.Lower), in.Upper), true
	}
	if wrapped || next < in.Lower || next > in.Upper {
		return value, false
	}
	return next, true
}

// expiry is the counter's expiry after an increment that is applied.
func (in *Incr) expiry(nowNs, expiresNs int64) int64 {
	switch {
	case in.Expire == ExpireNone:
		return Never
	case in.Expire == ExpireKeep, in.OnlyIfNew && expiresNs != Never:
		return expiresNs
	}
	return arith.AddNs(nowNs, in.ExpireNs)
}
