package engine

import "github.com/weir-project/weir/engine/internal/store"

// claim readies the cell's entry for the state an operation leaves behind and
// reports whether it leaves one: if admitted it takes its units, if denied it may
// put its limit in force.
func (s *shard) claim(c *store.Cell, op *Op, d *Decision) bool {
	switch {
	case op.Cost == 0 || op.Dry:
		return false
	case d.Allowed > 0:
		return c.Known || s.hold(c, op, d, 0)
	}
	return s.adopt(c, op, d)
}

// hold makes the cell's entry one of the operation's algorithm and limit, with a
// zero state if it was not live, and sees to it that a block of blockLen bytes may
// follow. Without room it answers OutOfMemory and returns false.
func (s *shard) hold(c *store.Cell, op *Op, d *Decision, blockLen int) bool {
	a, l := op.Limit.Algorithm, &op.Limit
	known := c.Ref != 0 && s.Limits.At(c.Entry.Limit()).Is(l)
	if !known && !s.AdmitLimit(l, c.Ref) || !s.AdmitBytes(blockLen, c.Ref) || !s.Ensure(c, uint8(a), store.LimitStateLen(l)) {
		*d = Decision{Status: OutOfMemory}
		return false
	}
	if !known {
		s.SetLimit(c.Entry, l)
		c.Relink = true
	}
	return true
}

// adopt lets a denied operation put its limit in force: what was used stays used,
// but drains, or ends, by the new limit from now on. Without this a key denied
// under a slow limit would stay so after the limit was raised, and the reply's
// retry_after would be wrong. Only a request that would fit some day does it: such
// a one is not denied for want of a burst, so no token is cut off.
func (s *shard) adopt(c *store.Cell, op *Op, d *Decision) bool {
	if !s.adopts(c, op, d) || !s.Stretch(c, store.LimitStateLen(&op.Limit)) {
		return false
	}
	s.SetLimit(c.Entry, &op.Limit)
	c.Relink = true
	return true
}

// adopts reports whether a denied operation may put its limit in force.
func (s *shard) adopts(c *store.Cell, op *Op, d *Decision) bool {
	if c.Known {
		return false // it is
	}
	fits := d.RetryMs >= 0 || op.canFit() // a window without end has no wait to name
	return fits && c.Live && !s.Limits.At(c.Entry.Limit()).Is(&op.Limit) && s.MayAddLimit(&op.Limit)
}
