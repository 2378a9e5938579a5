package engine

import "github.com/weir-project/weir/engine/internal/store"

// A decision is remembered in five numbers. The limit, at most MaxUnits, leaves room for Pair
// and Part, and for a sign: then it is the status, and all but Pair is zero.

// pack makes a decision an answer to remember.
func (d *Decision) pack() store.Answer {
	limit := d.Limit | int64(d.Pair)<<store.LimitBits | int64(d.Part)<<(store.LimitBits+4)
	if d.Status != OK {
		limit |= int64(d.Status) | -1<<63
	}
	return store.Answer{d.Allowed, d.Remaining, d.RetryMs, d.ResetMs, limit}
}

// unpack returns the decision that was remembered.
func unpack(a *store.Answer) (d Decision) {
	d = Decision{
		Allowed: a[0], Remaining: a[1], RetryMs: a[2], ResetMs: a[3], Limit: a[4] & (1<<store.LimitBits - 1),
		Pair: uint8(a[4]>>store.LimitBits) & 0xf, Part: uint8(a[4]>>(store.LimitBits+4)) & 0xf,
	}
	if a[4] < 0 {
		d.Status, d.Limit = Status(d.Limit), 0
	}
	return d
}
