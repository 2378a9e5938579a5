package engine

import (
	"math"

	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/store"
)

// increment carries out OpIncr with the semantics of Redis 8.8's INCREX. An increment that would leave the
// bounds does nothing, or stops at the bound with Saturate.
func increment(s *store.Store, c *store.Cell, op *Op, d *Decision) bool {
	in := op.Incr
	value, expiresNs := int64(0), Never
	if c.Live {
		old := store.ReadCounter(c.Entry.State())
		value, expiresNs = old.Value, old.ExpiresNs
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
	expiresNs = in.expiry(s.NowNs, expiresNs)
	if expiresNs <= s.NowNs {
		if c.Live {
			s.Drop(c)
		}
		return true
	}
	if !s.Ensure(c, uint8(Counter), store.StateLens[Counter]) {
		*d = Decision{Status: OutOfMemory}
		return false
	}
	store.Counter{Value: next, ExpiresNs: expiresNs}.Write(c.Entry.State())
	c.Relink = true
	s.Touched(c)
	return true
}

// apply returns the value after the increment. If the increment is refused, it returns the old value and false.
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

// expiry returns the counter's expiry after an increment that was applied.
func (in *Incr) expiry(nowNs, expiresNs int64) int64 {
	switch {
	case in.Expire == ExpireNone:
		return Never
	case in.Expire == ExpireKeep, in.OnlyIfNew && expiresNs != Never:
		return expiresNs
	}
	return arith.AddNs(nowNs, in.ExpireNs)
}
