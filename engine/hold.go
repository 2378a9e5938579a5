package engine

import "github.com/weir-project/weir/engine/internal/arith"

// A hold takes units before the true cost of a request is known (OpReserve), and is
// settled once it is (OpCommit) or called off (OpCancel). It consists of a record under
// its id (this file) and of a claim in every limiter it took from (claims.go).
//
//	none ── OpReserve ─▶ held ─┬─ OpCommit ─▶ settled ───┐
//	                           ├─ OpCancel ─▶ cancelled ─┼─ IDLifetime ─▶ none
//	                           └─ its end ──▶ ended ─────┘
//
// Claims end by themselves: nothing has to be done for a hold at its end. One that has
// ended or was cancelled has given everything back. An OpCommit that comes then all the
// same takes its units anew and settles the hold: they were used, and a limit that did not
// count them would have let through too much.

// MaxHoldBytes bounds the policies and keys of one hold, four bytes for each pair
// included: its record is one slot.
const MaxHoldBytes = 800

// HoldBytes is what the policies and keys of an OpReserve take of MaxHoldBytes.
func (op *Op) HoldBytes() (n int) {
	for i := 0; ; i++ {
		pair, more := op.pair(i)
		if !more {
			return n
		}
		n += holdPairHead + len(pair.Policy) + len(pair.Key)
	}
}

// holdPhase is what became of a hold. One that is open has ended when its time is over.
type holdPhase uint8

const (
	holdOpen holdPhase = iota
	holdSettled
	holdCancelled
	numHoldPhases
)

// hold is the record of a hold. As stored in an entry's state it is a token (the answer
// to OpReserve, and when the record is forgotten), five numbers, phase(1) high(1)
// pairs(1), and the pairs, each took(1) policyLen(1) keyLen(2) policy key.
type hold struct {
	answer   Decision
	forgetNs int64
	endsNs   int64
	units    int64
	ttlNs    int64
	actual   int64 // settled: the units of the OpCommit, and its answer
	left     int64
	phase    holdPhase
	high     bool
	pairs    []holdPair
}

// holdPair is a pair and the limits of its policy that the hold took from, as bits.
type holdPair struct {
	Pair
	took uint8
}

const (
	holdHead     = tokenLen + 5*8 + 3
	holdPairHead = 4
)

func readHold(st []byte) (x hold) {
	x.answer, x.forgetNs = readToken(st)
	for i, n := range [...]*int64{&x.endsNs, &x.units, &x.ttlNs, &x.actual, &x.left} {
		*n = int64(le.Uint64(st[tokenLen+8*i:]))
	}
	x.phase, x.high = holdPhase(st[holdHead-3]), st[holdHead-2] != 0
	b := st[holdHead:]
	for range st[holdHead-1] {
		policy, key := int(b[1]), int(le.Uint16(b[2:]))
		end := holdPairHead + policy + key
		x.pairs = append(x.pairs, holdPair{Pair{b[holdPairHead : holdPairHead+policy], b[holdPairHead+policy : end]}, b[0]})
		b = b[end:]
	}
	return x
}

// len is the length of the record in a state.
func (x *hold) len() int {
	n := holdHead
	for _, p := range x.pairs {
		n += holdPairHead + len(p.Policy) + len(p.Key)
	}
	return n
}

func (x *hold) write(st []byte) {
	writeToken(st, &x.answer, x.forgetNs)
	for i, n := range [...]int64{x.endsNs, x.units, x.ttlNs, x.actual, x.left} {
		le.PutUint64(st[tokenLen+8*i:], uint64(n))
	}
	st[holdHead-3], st[holdHead-2], st[holdHead-1] = uint8(x.phase), uint8(arith.OneIf(x.high)), uint8(len(x.pairs))
	b := st[holdHead:]
	for _, p := range x.pairs {
		b[0], b[1] = p.took, uint8(len(p.Policy))
		le.PutUint16(b[2:], uint16(len(p.Key)))
		n := copy(b[holdPairHead:], p.Policy)
		n += copy(b[holdPairHead+n:], p.Key)
		b = b[holdPairHead+n:]
	}
}

// soundHold reports whether a stored state can be read.
func soundHold(st []byte) bool {
	if len(st) < holdHead || st[holdHead-3] >= uint8(numHoldPhases) || len(st) > holdHead+MaxHoldBytes {
		return false
	}
	b := st[holdHead:]
	for range st[holdHead-1] {
		if len(b) < holdPairHead || b[1] == 0 || b[1] > MaxPolicyLen {
			return false
		}
		key := int(le.Uint16(b[2:]))
		end := holdPairHead + int(b[1]) + key
		if key == 0 || key > MaxKeyLen || end > len(b) {
			return false
		}
		b = b[end:]
	}
	return len(b) == 0
}

// same reports whether the hold was made on the terms of an OpReserve.
func (x *hold) same(op *Op) bool {
	if x.units != op.Cost || x.ttlNs != op.TTLNs || x.high != op.High || len(x.pairs) != 1+len(op.Also) {
		return false
	}
	for i, p := range x.pairs {
		asked := op.PairAt(i)
		if string(p.Policy) != string(asked.Policy) || string(p.Key) != string(asked.Key) {
			return false
		}
	}
	return true
}

// openHold finds the record of a hold, in the shard of its id.
func (t *Table) openHold(id []byte) (s *shard, c cell) {
	h, s := t.find(id)
	c = cell{hash: h, key: id, ns: holds}
	s.open(&c)
	return s, c
}
