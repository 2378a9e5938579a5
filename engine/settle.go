package engine

import (
	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/unitlog"
)

// settle carries out the operations that are no decisions.
func (s *shard) settle(h uint64, op *Op, d *Decision) bool {
	if op.Code == OpResetPolicy {
		return s.resetPolicy(op, d)
	}
	c := cell{hash: h, key: op.Key}
	if op.Code == OpBlock || op.Code == OpUnblock || op.Code == OpBlockEverywhere {
		c.ns = blocks
	}
	if s.open(&c); c.ns == limiters {
		s.bringUp(&c)
	}
	if c.ns == blocks && op.Partial && c.live && isEverywhere(c.e.state()) {
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
	if op.Code == OpForget && c.r != 0 {
		d.Allowed = arith.OneIf(c.live)
		s.giveUp(&c)
		return d.Allowed > 0
	}
	if !c.live {
		return false
	}
	switch op.Code {
	case OpReset, OpUnblock:
		d.Allowed = 1
		s.countSuccess(c.e)
		s.drop(&c)
		return true
	}
	if c.e.kind() != uint8(Concurrency) {
		d.Status = WrongType
		return false
	}
	if op.Code == OpRelease {
		return s.releaseLease(&c, op, d)
	}
	return s.renewLease(&c, op, d)
}

func (s *shard) block(c *cell, op *Op, d *Decision) bool {
	everywhere := op.Code == OpBlockEverywhere
	if everywhere && !s.mayBlockEverywhere(op.Key) {
		d.Status = BlocksFull
		return false
	}
	wasEverywhere := c.live && isEverywhere(c.e.state())
	if !s.ensure(c, kindBlock, blockLen+len(op.Text)) {
		d.Status = OutOfMemory
		return false
	}
	d.Allowed = 1
	if everywhere {
		d.Remaining = arith.OneIf(wasEverywhere)
	}
	s.noteBlock(c.e, false)
	writeBlock(c.e.state(), arith.AddNs(s.nowNs, op.TTLNs), everywhere, op.Text)
	s.noteBlock(c.e, true)
	c.relink = true
	s.touched(c)
	return true
}

// denyBlocked answers a decision on a blocked key.
func (s *shard) denyBlocked(c *cell, op *Op, d *Decision) bool {
	untilNs, blocked := s.blockedUntil(c.hash, c.key, op)
	if !blocked {
		return false
	}
	look := *op
	look.Cost, look.Dry = 0, true
	s.take(c, &look, d)
	leftMs := s.spanMs(untilNs)
	resetMs := max(d.ResetMs, leftMs)
	if d.ResetMs < 0 || leftMs < 0 {
		resetMs = -1
	}
	*d = Decision{RetryMs: leftMs, ResetMs: resetMs, Limit: op.Limit.Max}
	return true
}

// isBlocked reports whether an administrative block denies the operation on the key.
func (s *shard) isBlocked(c *cell, op *Op) bool {
	_, blocked := s.blockedUntil(c.hash, c.key, op)
	return blocked
}

// blockedUntil returns when the last administrative block of an operation on a key ends: the
// key's own, one everywhere, or one of the address that the operation comes from.
func (s *shard) blockedUntil(hash uint64, key []byte, op *Op) (untilNs int64, blocked bool) {
	if s.counts.entries[kindBlock] > 0 {
		b := cell{hash: hash, key: key, ns: blocks}
		s.open(&b)
		if b.live {
			untilNs, _ = readBlock(b.e.state())
		}
	}
	if all := s.t.everywhere.Load(); all != nil {
		untilNs = max(untilNs, all.on(key, s.nowNs).untilNs, all.from(op.From, s.nowNs))
	}
	return untilNs, untilNs > 0
}

// counter carries out OpIncr on a key that holds a counter or nothing. On a blocked
// key an increment is refused as if it were out of bounds.
func (s *shard) counter(c *cell, op *Op, d *Decision) bool {
	if c.live && c.e.kind() != uint8(Counter) {
		d.Status = WrongType
		return false
	}
	changed := false
	if op.Incr.By <= 0 || !s.isBlocked(c, op) {
		changed = s.incr(c, op, d)
	} else if c.live {
		d.Remaining = int64(le.Uint64(c.e.state()))
	}
	if d.Status == OK && op.Incr.By > 0 { // giving back is no decision
		s.counts.count(Counter, d.Allowed > 0)
		s.heavy.Weigh(s.nowNs, c.hash, c.key, op.Incr.By, d.verdict())
	}
	return changed
}

// refund gives units back to the limiter they were taken from.
func (s *shard) refund(c *cell, op *Op, d *Decision) bool {
	if !c.live {
		d.Remaining = -1
		return false
	}
	limit := *s.limits.at(c.e.limit())
	if limit.Algorithm == NoAlgorithm || limit.Algorithm == Concurrency {
		d.Status = NotRefundable
		return false
	}
	given := min(op.Cost, s.refundable(c.e))
	if given > 0 {
		s.giveBack(c.e, &limit, given)
		s.refunded(c, &limit, given)
	}
	d.Allowed = arith.OneIf(given > 0)
	look := Op{Key: op.Key, Limit: limit, Dry: true}
	var left Decision
	s.take(c, &look, &left)
	d.Remaining = left.Remaining
	if given > 0 {
		s.settled(c)
	}
	return given > 0
}

// refundable is how many units were taken and may be given back: what is used, but
// a sliding window counter gives back from its counts, not from what they weigh now.
func (s *shard) refundable(e entry) int64 {
	if e.kind() != uint8(SlidingCounter) {
		return s.usedUnits(e)
	}
	w := readSlidingCounter(e.state()).roll(s.nowNs, s.limits.at(e.limit()).WindowNs)
	return w.prev + w.cur
}

// giveBack takes units, no more than are refundable, out of a state.
func (s *shard) giveBack(e entry, l *Limit, units int64) {
	st := e.state()
	switch l.Algorithm {
	case TokenBucket, LeakyBucket:
		deficit := deficitAt(bucketOf(e), l.Rate, s.nowNs).SubFloor(l.Rate.Grains(units))
		setBucket(e, goneAt(deficit, l.Rate, s.nowNs))
	case FixedWindow:
		w := readFixed(st)
		w.used -= units
		w.write(st)
	case SlidingCounter:
		w := readSlidingCounter(st).roll(s.nowNs, l.WindowNs)
		fromCur := min(units, w.cur)
		w.cur -= fromCur
		w.prev -= min(units-fromCur, w.prev)
		w.write(st)
	case SlidingLog, Strike:
		log := unitlog.Read(st)
		log.DropUntil(&s.slab, s.nowNs-l.WindowNs)
		log.KeepFirst(&s.slab, log.Units-units)
		log.Write(st)
	}
}
