package engine

import "github.com/weir-project/weir/engine/internal/arith"

// do carries out one operation. h is the hash of its key.
func (s *shard) do(h uint64, op *Op, d *Decision) {
	*d = Decision{}
	if len(op.ID) == 0 || op.Dry || op.Code == OpReserve {
		s.carryOut(h, op, d)
		return
	}
	var memory cell
	s.openToken(&memory, op)
	if op.Code == OpForget {
		if memory.r != 0 {
			d.Allowed = arith.OneIf(memory.live)
			s.giveUp(&memory)
		}
		return
	}
	if memory.live {
		*d, _ = readToken(memory.e.state())
		return
	}
	if !s.makeRoom(op.tokenLen(), 0) {
		d.Status = OutOfMemory
		return
	}
	if s.carryOut(h, op, d); d.Status != OutOfMemory {
		s.remember(op, d)
	}
}

// openToken finds what is remembered of the operation's ID.
func (s *shard) openToken(c *cell, op *Op) {
	name := append(s.scratch[:0], byte(len(op.Key)), byte(len(op.Key)>>8))
	name = append(append(name, op.Key...), op.ID...)
	*c = cell{hash: s.t.hashKey(name), key: name, ns: tokens}
	s.open(c)
}

// remember keeps the answer to an operation for its ID, whatever it is. A copy of the
// request may still be on its way, from a try that its client has given up: it must
// not take what a later try was denied, nor give back what was found to be gone.
func (s *shard) remember(op *Op, d *Decision) {
	var c cell
	s.openToken(&c, op)
	if !s.ensure(&c, kindToken, tokenLen) {
		// The entry took the room there was. The operation counts, and a repetition
		// would count again: too much, which is the safe side for all but a refund.
		return
	}
	writeToken(c.e.state(), d, arith.AddNs(s.nowNs, s.t.opts.IDLifetimeNs))
	c.relink = true
	s.touched(&c)
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
		return s.settle(h, op, d)
	}
	c := cell{hash: h, key: op.Key}
	s.open(&c)
	if c.live && c.e.kind() != uint8(op.Limit.Algorithm) {
		d.Status = WrongType
		return false
	}
	changed := false
	if !s.anyBlock() || !s.denyBlocked(&c, op, d) {
		changed = s.take(&c, op, d)
	}
	if d.Status == OK && op.Cost > 0 && !op.Dry {
		s.counts.count(op.Limit.Algorithm, d.Allowed > 0)
		s.heavy.Weigh(s.nowNs, c.hash, c.key, op.weight(d), d.verdict())
	}
	return changed
}

func (n *counts) count(a Algorithm, admitted bool) {
	if admitted {
		n.admitted[a]++
	} else {
		n.denied[a]++
	}
}

// tokenLen is the size of the token the operation adds.
func (op *Op) tokenLen() int { return entryLen(2+len(op.Key)+len(op.ID), tokenLen) }

// take decides under the operation's limit.
func (s *shard) take(c *cell, op *Op, d *Decision) bool {
	switch op.Limit.Algorithm {
	case TokenBucket, LeakyBucket, FixedWindow, SlidingCounter:
		return s.put(c, op, d, s.next(c, op, d))
	case SlidingLog:
		return s.takeSliding(c, op, d)
	case Concurrency:
		return s.takeLease(c, op, d)
	case Strike:
		return s.takeStrike(c, op, d)
	}
	panic("engine: decision without an algorithm")
}
