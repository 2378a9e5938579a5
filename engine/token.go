package engine

import (
	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/store"
)

// A token is the remembered answer to an ID. It belongs to a key and to the request that the ID came with (see
// Fingerprint). A request with several keys has a token on each of them, so that a request with some of these keys
// finds it, whatever their order.
//
// Older versions of weir had no fingerprints. A request or a token without one is repeated by its first key and its ID
// alone, and any answer to such a request is remembered.

// doOnce carries out an operation with an ID, or returns the answer that is remembered for it.
func (s *shard) doOnce(h uint64, op *Op, d *Decision) {
	if op.Code == OpForget {
		var c store.Cell
		if s.openToken(&c, op.Key, op.ID); c.Ref != 0 {
			d.Allowed = arith.OneIf(c.Live)
			s.GiveUp(&c)
		}
		return
	}
	if s.recall(op, d) {
		return
	}
	looks := op.bound() && op.decides() && op.Cost == 0
	if !looks && !s.admitTokens(op) {
		d.Status = OutOfMemory
		return
	}
	if changed := s.carryOut(h, op, d); op.remembers(d, changed) {
		s.remember(op, d)
	}
}

// remembers reports whether the answer d is kept for repetitions. An error is not kept, and neither is the answer of a
// decision that took nothing: a denial, or a look with cost 0. So a denied request is decided anew when it is sent
// again with its ID. Other answers are kept whatever they are: if a refund found nothing to give back, a late copy of
// it must not give anything back.
func (op *Op) remembers(d *Decision, changed bool) bool {
	if !op.bound() {
		return d.Status != OutOfMemory
	}
	return d.Status == OK && (!op.decides() || d.Allowed > 0 && op.Cost > 0 || changed)
}

// decides reports whether the operation takes units or is denied.
func (op *Op) decides() bool { return op.Code == OpTake || op.Code == OpCheck || op.Code == OpExtend }

// bound reports whether the operation has a fingerprint.
func (op *Op) bound() bool { return op.Asks != Fingerprint{} }

// recall answers an operation that repeats an earlier one, or an operation whose ID belongs to another request. It
// returns false if the ID is new on all keys.
func (s *shard) recall(op *Op, d *Decision) (known bool) {
	for i := 0; ; i++ {
		key, more := op.tokenKey(i)
		if !more {
			return known
		}
		if key == nil {
			continue
		}
		var c store.Cell
		_, at := s.t.find(key)
		if at.openToken(&c, key, op.ID); !c.Live {
			continue
		}
		answer, asked := store.ReadToken(c.Entry.State())
		switch free := asked == (store.Asked{}); {
		case i > 0 && free: // of a request without a fingerprint, whose first key this is
		case free || !op.bound() || Fingerprint(asked) == op.Asks:
			*d = unpack(&answer)
			if by, divided := store.Divided(c.Entry.State()); divided && d.Allowed > 0 {
				d.Value = paidText(op.Else, by, func(i int) []byte { return op.PairAt(i).Policy })
			}
			return true
		case !known:
			*d, known = otherTerms(Fingerprint(asked), op.Asks), true
		}
	}
}

// tokenKey returns the i-th key that an operation has a token on, or nil if an earlier pair has the same key.
func (op *Op) tokenKey(i int) (key []byte, more bool) {
	if i == 0 {
		return op.Key, true
	}
	if !op.bound() || i > len(op.Also) {
		return nil, false
	}
	key = op.Also[i-1].Key
	for k := range i {
		if string(op.PairAt(k).Key) == string(key) {
			return nil, true
		}
	}
	return key, true
}

// openToken finds the token of an ID on a key of this shard.
func (s *shard) openToken(c *store.Cell, key, id []byte) {
	name := append(s.scratch[:0], byte(len(key)), byte(len(key)>>8))
	name = append(append(name, key...), id...)
	*c = store.Cell{Hash: s.t.hashKey(name), Key: name, Space: store.Tokens}
	s.Open(c)
}

// remember stores the answer to an operation for its ID.
func (s *shard) remember(op *Op, d *Decision) {
	answer, untilNs, length := d.pack(), arith.AddNs(s.NowNs, s.t.opts.IDLifetimeNs), op.tokenLen()
	for i := 0; ; i++ {
		key, more := op.tokenKey(i)
		if !more {
			return
		}
		if key == nil {
			continue
		}
		var c store.Cell
		_, at := s.t.find(key)
		if at.openToken(&c, key, op.ID); !at.Ensure(&c, store.KindToken, length) {
			// The new entry used the last free memory. The operation counts, and a repetition would count again unless
			// an earlier key has a token. Counting too much is the safe side for all operations except a refund.
			return
		}
		store.WriteToken(c.Entry.State(), &answer, store.Asked(op.Asks), untilNs)
		if length > store.TokenLen {
			store.DivideToken(c.Entry.State(), d.bySource())
		}
		c.Relink = true
		at.Touched(&c)
	}
}

// admitTokens reports whether there is memory for the tokens of an operation. It is asked before the operation takes
// anything.
func (s *shard) admitTokens(op *Op) bool {
	for i := 0; ; i++ {
		key, more := op.tokenKey(i)
		if !more {
			return true
		}
		if key == nil {
			continue
		}
		if _, at := s.t.find(key); !at.AdmitBytes(store.EntryLen(2+len(key)+len(op.ID), op.tokenLen()), 0) {
			return false
		}
	}
}

// tokenLen returns the length of the state of an operation's token.
func (op *Op) tokenLen() int {
	if op.Else != 0 {
		return store.DividedTokenLen
	}
	return store.TokenLen
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
