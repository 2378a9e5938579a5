package engine

import (
	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/store"
)

// settle carries out the operations that are no decisions.
func (s *shard) settle(h uint64, op *Op, d *Decision) bool {
	if op.Code == OpResetPolicy {
		return s.resetPolicy(op, d)
	}
	c := store.Cell{Hash: h, Key: op.Key}
	if op.Code == OpBlock || op.Code == OpUnblock || op.Code == OpBlockEverywhere {
		c.Space = store.Blocks
	}
	if s.Open(&c); c.Space == store.Limiters {
		s.BringUp(&c)
	}
	if c.Space == store.Blocks && op.Partial && c.Live && store.IsEverywhere(c.Entry.State()) {
		d.Status = EverywhereStays
		return false
	}
	switch op.Code {
	case OpBlock, OpBlockEverywhere:
		return s.block(&c, op, d)
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
	switch op.Code {
	case OpReset, OpUnblock:
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
		return s.releaseLease(&c, op, d)
	}
	return s.renewLease(&c, op, d)
}

func (s *shard) block(c *store.Cell, op *Op, d *Decision) bool {
	everywhere := op.Code == OpBlockEverywhere
	if everywhere && !s.mayBlockEverywhere(op.Key) {
		d.Status = BlocksFull
		return false
	}
	wasEverywhere := c.Live && store.IsEverywhere(c.Entry.State())
	if !s.Ensure(c, store.KindBlock, store.BlockLen+len(op.Text)) {
		d.Status = OutOfMemory
		return false
	}
	d.Allowed = 1
	if everywhere {
		d.Remaining = arith.OneIf(wasEverywhere)
	}
	s.BlockChanged(c.Entry, false)
	store.WriteBlock(c.Entry.State(), arith.AddNs(s.NowNs, op.TTLNs), everywhere, op.Text)
	s.BlockChanged(c.Entry, true)
	c.Relink = true
	s.Touched(c)
	return true
}

// denyBlocked answers a decision on a blocked key.
func (s *shard) denyBlocked(c *store.Cell, op *Op, d *Decision) bool {
	untilNs, blocked := s.blockedUntil(c.Hash, c.Key, op)
	if !blocked {
		return false
	}
	look := *op
	look.Cost, look.Dry = 0, true
	s.take(c, &look, d)
	leftMs := s.SpanMs(untilNs)
	resetMs := max(d.ResetMs, leftMs)
	if d.ResetMs < 0 || leftMs < 0 {
		resetMs = -1
	}
	*d = Decision{RetryMs: leftMs, ResetMs: resetMs, Limit: op.Limit.Max}
	return true
}

// isBlocked reports whether an administrative block denies the operation on the key.
func (s *shard) isBlocked(c *store.Cell, op *Op) bool {
	_, blocked := s.blockedUntil(c.Hash, c.Key, op)
	return blocked
}

// blockedUntil returns when the last administrative block of an operation on a key ends: the
// key's own, one everywhere, or one of the address that the operation comes from.
func (s *shard) blockedUntil(hash uint64, key []byte, op *Op) (untilNs int64, blocked bool) {
	if s.Counts.Entries[store.KindBlock] > 0 {
		b := store.Cell{Hash: hash, Key: key, Space: store.Blocks}
		s.Open(&b)
		if b.Live {
			untilNs, _ = store.ReadBlock(b.Entry.State())
		}
	}
	if all := s.t.everywhere.Load(); all != nil {
		untilNs = max(untilNs, all.on(key, s.NowNs).untilNs, all.from(op.From, s.NowNs))
	}
	return untilNs, untilNs > 0
}

// counter carries out OpIncr on a key that holds a counter or nothing. On a blocked
// key an increment is refused as if it were out of bounds.
func (s *shard) counter(c *store.Cell, op *Op, d *Decision) bool {
	if c.Live && c.Entry.Kind() != uint8(Counter) {
		d.Status = WrongType
		return false
	}
	changed := false
	if op.Incr.By <= 0 || !s.isBlocked(c, op) {
		changed = s.incr(c, op, d)
	} else if c.Live {
		d.Remaining = store.ReadCounter(c.Entry.State()).Value
	}
	if d.Status == OK && op.Incr.By > 0 { // giving back is no decision
		s.decided.count(Counter, d.Allowed > 0)
		s.heavy.Weigh(s.NowNs, c.Hash, c.Key, op.Incr.By, d.verdict())
	}
	return changed
}

// refund gives units back to the limiter they were taken from.
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
		s.GiveBack(c.Entry, &limit, given)
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
