package store

import (
	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/rule"
)

// MaxHoldBytes bounds the policies and keys of one hold, including four bytes for each pair, because its record
// is one slot.
const MaxHoldBytes = 800

// holdPhase is the phase of a hold. A hold whose EndsNs has passed stays in the phase HoldOpen, but has ended.
type holdPhase uint8

const (
	HoldOpen holdPhase = iota
	HoldCompleted
	HoldCancelled
	numHoldPhases
)

// Hold is the record of a hold. In an entry's state it has this form. The answer is Answer and ForgetNs, and the
// five numbers are EndsNs to Left:
//
//	answer(48) numbers(5x8) phase(1) high(1) pairs(1) pair...
//	pair = took(1) policyLen(1) keyLen(2) policy key
type Hold struct {
	Answer   Answer // the answer to OpReserve
	ForgetNs int64  // when the record expires
	EndsNs   int64  // when the hold ends by itself
	Units    int64
	TTLNs    int64
	Actual   int64 // after OpCommit: the true cost
	Left     int64 // after OpCommit: Remaining of its answer
	Phase    holdPhase
	High     bool // of the OpReserve
	Pairs    []HoldPair
}

// HoldPair is a pair of policy and key. Took has a bit for each limit of the policy that the hold took from.
type HoldPair struct {
	Policy, Key []byte
	Took        uint8
}

const (
	holdHead     = answerLen + 5*8 + 3
	HoldPairHead = 4
)

// ReadHold decodes the record of a hold. Its policies and keys refer to the state's bytes.
func ReadHold(st []byte) (x Hold) {
	x.Answer, x.ForgetNs = readAnswer(st), forgetNs(st)
	for i, n := range [...]*int64{&x.EndsNs, &x.Units, &x.TTLNs, &x.Actual, &x.Left} {
		*n = int64(le.Uint64(st[answerLen+8*i:]))
	}
	x.Phase, x.High = holdPhase(st[holdHead-3]), st[holdHead-2] != 0
	b := st[holdHead:]
	for range st[holdHead-1] {
		policy, key := int(b[1]), int(le.Uint16(b[2:]))
		end := HoldPairHead + policy + key
		x.Pairs = append(x.Pairs, HoldPair{b[HoldPairHead : HoldPairHead+policy], b[HoldPairHead+policy : end], b[0]})
		b = b[end:]
	}
	return x
}

// Len returns the length of the record in a state.
func (x *Hold) Len() int {
	n := holdHead
	for _, p := range x.Pairs {
		n += HoldPairHead + len(p.Policy) + len(p.Key)
	}
	return n
}

// Write stores the record in a state.
func (x *Hold) Write(st []byte) {
	writeAnswer(st, &x.Answer, x.ForgetNs)
	for i, n := range [...]int64{x.EndsNs, x.Units, x.TTLNs, x.Actual, x.Left} {
		le.PutUint64(st[answerLen+8*i:], uint64(n))
	}
	st[holdHead-3], st[holdHead-2], st[holdHead-1] = uint8(x.Phase), uint8(arith.OneIf(x.High)), uint8(len(x.Pairs))
	b := st[holdHead:]
	for _, p := range x.Pairs {
		b[0], b[1] = p.Took, uint8(len(p.Policy))
		le.PutUint16(b[2:], uint16(len(p.Key)))
		n := copy(b[HoldPairHead:], p.Policy)
		n += copy(b[HoldPairHead+n:], p.Key)
		b = b[HoldPairHead+n:]
	}
}

// validHold reports whether a stored state can be decoded.
func validHold(st []byte) bool {
	if len(st) < holdHead || st[holdHead-3] >= uint8(numHoldPhases) || len(st) > holdHead+MaxHoldBytes {
		return false
	}
	b := st[holdHead:]
	for range st[holdHead-1] {
		if len(b) < HoldPairHead || b[1] == 0 || b[1] > rule.MaxPolicyLen {
			return false
		}
		key := int(le.Uint16(b[2:]))
		end := HoldPairHead + int(b[1]) + key
		if key == 0 || key > rule.MaxKeyLen || end > len(b) {
			return false
		}
		b = b[end:]
	}
	return len(b) == 0
}
