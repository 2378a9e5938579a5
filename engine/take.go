package engine

import (
	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/store"
)

// admit fills in Allowed, Remaining and Limit, which all counting algorithms compute alike. used is the number
// of units that count against op.Limit.Max now. admit returns the units granted, and whether the operation is
// admitted. An operation of cost 0 is admitted without a grant.
func admit(op *Op, used int64, d *Decision) (grant int64, ok bool) {
	left := max(op.Limit.Max-used, 0)
	grant, d.Allowed = op.Cost, 1
	if op.forced {
		grant = max(min(grant, op.Limit.Most()-used), 0)
		return grant, true
	}
	if op.Partial {
		grant = min(op.Cost, left)
		d.Allowed = grant
	}
	ok = used+grant <= op.Limit.Max && grant >= op.want()
	if !ok {
		grant, d.Allowed = 0, 0
	}
	d.Remaining = max(left-grant, 0)
	d.Limit = op.Limit.Max
	return grant, ok
}

// canFit reports whether the operation would be admitted by an idle limiter.
func (op *Op) canFit() bool { return op.want() <= op.Limit.Max }

// want returns how many units must fit for the operation to be admitted.
func (op *Op) want() int64 {
	if op.Partial {
		return min(op.Cost, 1)
	}
	return op.Cost
}

// prepare makes the cell's entry ready for the new state of the limiter: it has the algorithm and the limit of
// the operation. It returns false if the operation must not store a state. An admitted operation stores a state
// unless memory is exhausted. A denied operation stores one if it puts its limit in force (see adopt).
func prepare(s *store.Store, c *store.Cell, op *Op, d *Decision) bool {
	switch {
	case op.Cost == 0 || op.Dry:
		return false
	case d.Allowed > 0:
		return c.Known || ensureLimiter(s, c, op, d, 0)
	}
	return adopt(s, c, op, d)
}

// ensureLimiter gives the cell an entry of the operation's algorithm and limit, with a zero state if it was not
// live. It also admits the memory of a block of blockLen bytes. If memory is exhausted it answers OutOfMemory
// and returns false.
func ensureLimiter(s *store.Store, c *store.Cell, op *Op, d *Decision, blockLen int) bool {
	a, l := op.Limit.Algorithm, &op.Limit
	known := c.Ref != 0 && s.Limits.At(c.Entry.Limit()).Is(l)
	if !known && !s.AdmitLimit(l, c.Ref) || !s.AdmitBytes(blockLen, c.Ref) ||
		!s.Ensure(c, uint8(a), store.LimitStateLen(l)) {
		*d = Decision{Status: OutOfMemory}
		return false
	}
	if !known {
		s.SetLimit(c.Entry, l)
		c.Relink = true
	}
	return true
}

// adopt lets a denied operation put its limit in force. Used units stay used, but drain or expire by the new
// limit from now on. Without adopt, a key denied under a slow limit would stay denied after the limit was
// raised, and the retry time would be wrong. A request that can never fit its limit does not put it in force.
func adopt(s *store.Store, c *store.Cell, op *Op, d *Decision) bool {
	if !adopts(s, c, op, d) || !s.Stretch(c, store.LimitStateLen(&op.Limit)) {
		return false
	}
	s.SetLimit(c.Entry, &op.Limit)
	c.Relink = true
	return true
}

// putInForce is adopt for a denied operation on a log, whose state stays.
func putInForce(s *store.Store, c *store.Cell, op *Op, d *Decision) bool {
	if s.OldRules || op.Dry || op.Cost == 0 || !adopt(s, c, op, d) {
		return false
	}
	s.Touched(c)
	return true
}

// adopts reports whether a denied operation may put its limit in force.
func adopts(s *store.Store, c *store.Cell, op *Op, d *Decision) bool {
	if c.Known {
		return false // the limit is in force already
	}
	fits := d.RetryMs >= 0 || op.canFit() // in a window without end RetryMs is -1 even for a cost that could fit
	return fits && c.Live && !s.Limits.At(c.Entry.Limit()).Is(&op.Limit) && s.MayAddLimit(&op.Limit)
}

// outcome is the state of a limiter after a decision, for algorithms whose state is up to three numbers. It is
// computed without changing the table. So a check can decide under all of its limits before it takes from any.
type outcome struct{ a, b, c uint64 }

// readOutcome returns the state of an entry of such an algorithm.
func readOutcome(e store.Entry) (n outcome) {
	st := e.State()
	switch {
	case store.IsBucket(e.Kind()):
		gone := store.BucketOf(e)
		n = outcome{gone.Hi, gone.Lo, 0}
	case e.Kind() == uint8(SlidingCounter):
		n = outcome{le.Uint64(st), le.Uint64(st[8:]), le.Uint64(st[16:])}
	case e.Kind() == uint8(FixedWindow):
		n = outcome{le.Uint64(st), le.Uint64(st[8:]), 0}
	}
	return n
}

func (n *outcome) write(e store.Entry) {
	if store.IsBucket(e.Kind()) {
		store.SetBucket(e, arith.Uint128{Hi: n.a, Lo: n.b})
		return
	}
	st := e.State()
	le.PutUint64(st, n.a)
	le.PutUint64(st[8:], n.b)
	if e.Kind() == uint8(SlidingCounter) {
		le.PutUint64(st[16:], n.c)
	}
}

// apply writes the new state of a decision to the cell's entry, if there is one, and reports whether it took
// units.
func apply(s *store.Store, c *store.Cell, op *Op, d *Decision, n outcome) bool {
	if !prepare(s, c, op, d) {
		return false
	}
	n.write(c.Entry)
	s.Touched(c)
	return d.Allowed > 0
}
