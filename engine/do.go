package engine

import (
	"github.com/weir-project/weir/engine/internal/store"
)

// do carries out one operation. h is the hash of its key.
func (s *shard) do(h uint64, op *Op, d *Decision) {
	*d = Decision{}
	if len(op.ID) == 0 || op.Dry || op.Code == OpReserve {
		s.carryOut(h, op, d)
		return
	}
	s.doOnce(h, op, d)
	if op.Code == OpExtend && d.Status == OK {
		d.Value = s.heldText(op.Key)
	}
}

// carryOut carries out an operation. It reports whether it changed something that counts: a denied decision reports
// true only if it counted strikes.
func (s *shard) carryOut(h uint64, op *Op, d *Decision) bool {
	switch op.Code {
	case OpTake:
	case OpCheck:
		return s.check(h, op, d)
	case OpReserve:
		return s.reserve(h, op, d)
	case OpCommit:
		return s.commit(op, d)
	case OpCancel:
		return s.cancel(op, d)
	case OpExtend:
		return s.extendHold(op, d)
	case OpEnd:
		return s.endHold(op, d)
	case OpForgive:
		return s.forgive(op, d)
	case OpCharge:
		return s.chargePairs(op, d)
	case OpBind:
		d.Allowed = 1
		return true
	default:
		return s.adjust(h, op, d)
	}
	c := store.Cell{Hash: h, Key: op.Key}
	s.Open(&c)
	if c.Live && c.Entry.Kind() != uint8(op.Limit.Algorithm) {
		d.Status = WrongType
		return false
	}
	changed := false
	if !s.anyBlock() || !s.denyBlocked(&c, op, d) {
		changed = s.take(&c, op, d) && (d.Allowed > 0 || op.Limit.Algorithm == Strike)
	}
	if d.Status == OK && op.Cost > 0 && !op.Dry {
		s.tally(op.Limit.Algorithm, &c, op, op.Cost, d)
	}
	return changed
}

// tally counts a decision about a limiter in Stats and, by the units that it asked for or granted, in Top.
func (s *shard) tally(a Algorithm, c *store.Cell, op *Op, units int64, d *Decision) {
	if d.Allowed <= 0 {
		s.decided.denied[a]++
		s.heavy.Weigh(s.NowNs, c.Hash, c.Key, units, Denied)
		return
	}
	if op.Partial {
		units = d.Allowed
	}
	s.decided.admitted[a]++
	s.heavy.Weigh(s.NowNs, c.Hash, c.Key, units, Admitted)
}

// take decides under the operation's limit.
func (s *shard) take(c *store.Cell, op *Op, d *Decision) bool {
	switch op.Limit.Algorithm {
	case TokenBucket, LeakyBucket, FixedWindow, SlidingCounter:
		return apply(&s.Store, c, op, d, evaluate(&s.Store, c, op, d))
	case SlidingLog:
		return takeSliding(&s.Store, c, op, d)
	case Concurrency:
		return takeLease(&s.Store, c, op, d)
	case Strike:
		return s.takeStrike(c, op, d)
	}
	panic("engine: decision without an algorithm")
}

// evaluate decides under the operation's limit without changing the table. It returns the new state of the
// limiter. The caller stores that state if the operation is admitted, or if its denial changes the limit in
// force (see adopt).
func evaluate(s *store.Store, c *store.Cell, op *Op, d *Decision) outcome {
	switch op.Limit.Algorithm {
	case FixedWindow:
		return evaluateFixed(s, c, op, d)
	case SlidingCounter:
		return evaluateSlidingCounter(s, c, op, d)
	}
	return evaluateBucket(s, c, op, d)
}
