package engine

import (
	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/store"
)

// do carries out one operation. h is the hash of its key.
func (s *shard) do(h uint64, op *Op, d *Decision) {
	*d = Decision{}
	if len(op.ID) == 0 || op.Dry || op.Code == OpReserve {
		s.carryOut(h, op, d)
		return
	}
	var memory store.Cell
	s.openToken(&memory, op)
	if op.Code == OpForget {
		if memory.Ref != 0 {
			d.Allowed = arith.OneIf(memory.Live)
			s.GiveUp(&memory)
		}
		return
	}
	if memory.Live {
		answer, _ := store.ReadToken(memory.Entry.State())
		*d = unpack(&answer)
		return
	}
	if !s.AdmitBytes(op.tokenLen(), 0) {
		d.Status = OutOfMemory
		return
	}
	if s.carryOut(h, op, d); d.Status != OutOfMemory {
		s.remember(op, d)
	}
}

// openToken finds the answer that is remembered for the operation's ID.
func (s *shard) openToken(c *store.Cell, op *Op) {
	name := append(s.scratch[:0], byte(len(op.Key)), byte(len(op.Key)>>8))
	name = append(append(name, op.Key...), op.ID...)
	*c = store.Cell{Hash: s.t.hashKey(name), Key: name, Space: store.Tokens}
	s.Open(c)
}

// remember stores the answer to an operation for its ID, whatever the answer is. Denials are stored as well:
// after a timeout, the client repeats the request while the first copy is still in transit. If the repetition
// was denied, the first copy must not take units when it arrives. If the repetition found nothing to give
// back, the first copy must not give anything back.
func (s *shard) remember(op *Op, d *Decision) {
	var c store.Cell
	s.openToken(&c, op)
	if !s.Ensure(&c, store.KindToken, store.TokenLen) {
		// The new entry used the last free memory. The operation counts, and a repetition would count again. Counting
		// too much is the safe side for all operations except a refund.
		return
	}
	answer := d.pack()
	store.WriteToken(c.Entry.State(), &answer, arith.AddNs(s.NowNs, s.t.opts.IDLifetimeNs))
	c.Relink = true
	s.Touched(&c)
}

// carryOut carries out an operation and reports whether it changed something.
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
	case OpForgive:
		return s.forgive(op, d)
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
		changed = s.take(&c, op, d)
	}
	if d.Status == OK && op.Cost > 0 && !op.Dry {
		s.decided.count(op.Limit.Algorithm, d.Allowed > 0)
		s.heavy.Weigh(s.NowNs, c.Hash, c.Key, op.weight(d), d.verdict())
	}
	return changed
}

func (n *decided) count(a Algorithm, admitted bool) {
	if admitted {
		n.admitted[a]++
	} else {
		n.denied[a]++
	}
}

// weight returns how many units Top counts for a decision.
func (op *Op) weight(d *Decision) int64 {
	if op.Partial && d.Allowed > 0 {
		return d.Allowed
	}
	return op.Cost
}

// verdict reports whether a decision admitted something.
func (d *Decision) verdict() Verdict {
	if d.Allowed > 0 {
		return Admitted
	}
	return Denied
}

// tokenLen returns the size of the entry that remembers the answer to the operation.
func (op *Op) tokenLen() int { return store.EntryLen(2+len(op.Key)+len(op.ID), store.TokenLen) }

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

// A store.Answer has five numbers. The fifth has Limit, which is at most MaxUnits, in its lowest bits, and Pair
// and Part in the bits above. If the fifth number is negative, its lowest bits are the Status instead of Limit,
// and all other fields except Pair are zero.

// pack encodes a decision as the answer that is remembered.
func (d *Decision) pack() store.Answer {
	limit := d.Limit | int64(d.Pair)<<store.LimitBits | int64(d.Part)<<(store.LimitBits+4)
	if d.Status != OK {
		limit |= int64(d.Status) | -1<<63
	}
	return store.Answer{d.Allowed, d.Remaining, d.RetryMs, d.ResetMs, limit}
}

// unpack decodes a remembered answer.
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
