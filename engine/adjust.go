package engine

import (
	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/store"
)

// adjust carries out the operations that carryOut has no other function for: it gives back, removes, blocks, counts
// (OpIncr) or runs a script. It reports whether it changed state.
func (s *shard) adjust(h uint64, op *Op, d *Decision) bool {
	if op.Code == OpResetPolicy {
		return s.resetPolicy(op, d)
	}
	c := store.Cell{Hash: h, Key: op.Key}
	if op.Code == OpBlock || op.Code == OpUnblock || op.Code == OpBlockEverywhere {
		c.Space = store.Blocks
	}
	if s.Open(&c); c.Space == store.Limiters {
		s.UpToDate(&c)
	}
	if c.Space == store.Blocks {
		return s.changeBlocks(&c, op, d)
	}
	switch op.Code {
	case OpIncr:
		return s.counter(&c, op, d)
	case OpScript:
		return s.script(&c, op, d)
	case OpRefund:
		return s.refund(&c, op, d)
	}
	if op.Code == OpForget && c.Ref != 0 {
		d.Allowed = arith.OneIf(c.Live)
		s.GiveUp(&c)
		return d.Allowed > 0
	}
	if !c.Live {
		return false
	}
	if op.Code == OpReset {
		d.Allowed = 1
		s.countSuccess(c.Entry)
		s.Drop(&c)
		return true
	}
	if c.Entry.Kind() != uint8(Concurrency) {
		d.Status = WrongType
		return false
	}
	if op.Code == OpRelease {
		return releaseLease(&s.Store, &c, op, d)
	}
	return renewLease(&s.Store, &c, op, d)
}

// resetPolicy carries out an OpResetPolicy.
func (s *shard) resetPolicy(op *Op, d *Decision) bool {
	policy, _, key, ok := SplitName(op.Key)
	for i := 0; ok && i < MaxPolicyLimits; i++ {
		name := LimiterName(string(policy), i, key)
		c := store.Cell{Hash: s.t.hashKey(name), Key: name}
		s.Open(&c)
		if s.UpToDate(&c); c.Live {
			d.Allowed = 1
			s.countSuccess(c.Entry)
			s.Drop(&c)
		}
	}
	return d.Allowed > 0
}

// refund gives units back to the limiter that they were taken from.
func (s *shard) refund(c *store.Cell, op *Op, d *Decision) bool {
	if !c.Live {
		d.Remaining = -1
		return false
	}
	limit := *s.Limits.At(c.Entry.Limit())
	if limit.Algorithm == NoAlgorithm || limit.Algorithm == Concurrency {
		d.Status = NotRefundable
		return false
	}
	given := min(op.Cost, s.Refundable(c.Entry))
	if given > 0 {
		s.RemoveUnits(c.Entry, &limit, given)
		s.MoveMarks(c, &limit, given)
	}
	d.Allowed = arith.OneIf(given > 0)
	look := Op{Key: op.Key, Limit: limit, Dry: true}
	var left Decision
	s.take(c, &look, &left)
	d.Remaining = left.Remaining
	if given > 0 {
		s.Reduced(c)
	}
	return given > 0
}

// counter carries out OpIncr on a key that holds a counter or nothing. On a blocked key it denies an increment
// as if the value would leave its bounds.
func (s *shard) counter(c *store.Cell, op *Op, d *Decision) bool {
	if c.Live && c.Entry.Kind() != uint8(Counter) {
		d.Status = WrongType
		return false
	}
	changed := false
	if op.Incr.By <= 0 || !s.isBlocked(c, op) {
		changed = increment(&s.Store, c, op, d)
	} else if c.Live {
		d.Remaining = store.ReadCounter(c.Entry.State()).Value
	}
	if d.Status == OK && op.Incr.By > 0 { // a decrement gives units back and is no decision
		s.tally(Counter, c, op, op.Incr.By, d)
	}
	return changed
}
