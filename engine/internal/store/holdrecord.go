package store

import (
	"iter"

	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/rule"
)

// MaxHoldBytes bounds the policies and keys of one hold, including four bytes for each pair and what SourcesLen says,
// because its record is one slot.
const MaxHoldBytes = 800

// holdPhase is the phase of a hold. A hold whose EndsNs has passed stays in the phase HoldOpen, but has ended. If it
// has Records, an operation then tells its end, and makes it HoldExpired.
type holdPhase uint8

const (
	HoldOpen holdPhase = iota
	HoldCompleted
	HoldCancelled
	HoldExpired
	numHoldPhases
)

// Hold is the record of a hold. In an entry's state it has this form. The answer is Answer and ForgetNs, and the
// five numbers are EndsNs to Left:
//
//	answer(48) numbers(5x8) phase(1) high(1) pairs(1) pair... [added(8) extensions(8)] [sources]
//	pair = took(1) policyLen(1) keyLen(2) policy key
//
// The phase has the bit holdKeeps if Keep is set, holdRecords if Records is, holdGrown if added and extensions are
// there, and holdDivided if the sources are. Versions of weir that do not know these bits refuse the record.
type Hold struct {
	Answer     Answer // the answer to OpReserve
	ForgetNs   int64  // when the record expires
	EndsNs     int64  // when the hold ends by itself
	Units      int64  // of the OpReserve
	TTLNs      int64  // of the OpReserve
	Actual     int64  // of the last OpCommit: the true cost, or so far
	Left       int64  // after the last OpCommit: Remaining of its answer
	Phase      holdPhase
	High       bool // of the OpReserve
	Keep       bool // of the OpReserve: units that are held when the hold ends by itself stay taken
	Records    bool // a policy of the hold has RECORD: the record stays until events have told how the hold ended
	Pairs      []HoldPair
	Added      int64        // units of all extensions, and units that were used beyond what was held
	Extensions int64        // how many there were
	Else       Alternatives // of the OpReserve; 0: none, and no Sources
	Sources    []Source     // one for each alternative
}

// Total returns the units that were taken for the hold before it is committed.
func (x *Hold) Total() int64 { return x.Units + x.Added }

// UsedAtEnd returns the units that count as used if the hold ends by itself.
func (x *Hold) UsedAtEnd() int64 {
	if x.Keep {
		return x.Total()
	}
	return x.Actual
}

// untold reports whether the state is that of a hold with Records that was neither committed nor cancelled, and whose
// end no event has told.
func untold(st []byte) bool {
	return st[holdHead-3]&^(holdBits&^holdRecords) == holdRecords|uint8(HoldOpen)
}

// holdEndsNs returns EndsNs of the hold with a state.
func holdEndsNs(st []byte) int64 { return int64(le.Uint64(st[answerLen:])) }

const (
	holdRecords = 0x10
	holdDivided = 0x20
	holdKeeps   = 0x40
	holdGrown   = 0x80
	holdBits    = holdRecords | holdDivided | holdKeeps | holdGrown
	grownLen    = 2 * 8
)

// grown reports whether the record has the numbers of what was added.
func (x *Hold) grown() bool { return x.Added > 0 || x.Extensions > 0 }

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
	phase := st[holdHead-3]
	x.Phase, x.High = holdPhase(phase&^holdBits), st[holdHead-2] != 0
	x.Keep, x.Records = phase&holdKeeps != 0, phase&holdRecords != 0
	b := st[holdHead:]
	x.Pairs = make([]HoldPair, st[holdHead-1])
	for i := range x.Pairs {
		x.Pairs[i], b = readPair(b)
	}
	if phase&holdGrown != 0 {
		x.Added, x.Extensions = int64(le.Uint64(b)), int64(le.Uint64(b[8:]))
		b = b[grownLen:]
	}
	if phase&holdDivided != 0 {
		x.readSources(b)
	}
	return x
}

func readPair(b []byte) (p HoldPair, rest []byte) {
	policy, key := int(b[1]), int(le.Uint16(b[2:]))
	end := HoldPairHead + policy + key
	return HoldPair{b[HoldPairHead : HoldPairHead+policy], b[HoldPairHead+policy : end], b[0]}, b[end:]
}

// KeysOfHold returns the keys of the hold that is recorded in a state.
func KeysOfHold(st []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		p, b := HoldPair{}, st[holdHead:]
		for range st[holdHead-1] {
			if p, b = readPair(b); !yield(p.Key) {
				return
			}
		}
	}
}

// Len returns the length of the record in a state.
func (x *Hold) Len() int {
	n := holdHead
	for _, p := range x.Pairs {
		n += HoldPairHead + len(p.Policy) + len(p.Key)
	}
	if x.grown() {
		n += grownLen
	}
	if x.Else != 0 {
		n += elseLen + SourcesLen(x.Else)
	}
	return n
}

// Write stores the record in a state.
func (x *Hold) Write(st []byte) {
	writeAnswer(st, &x.Answer, x.ForgetNs)
	for i, n := range [...]int64{x.EndsNs, x.Units, x.TTLNs, x.Actual, x.Left} {
		le.PutUint64(st[answerLen+8*i:], uint64(n))
	}
	phase := uint8(x.Phase)
	if x.Keep {
		phase |= holdKeeps
	}
	if x.Records {
		phase |= holdRecords
	}
	if x.grown() {
		phase |= holdGrown
	}
	if x.Else != 0 {
		phase |= holdDivided
	}
	st[holdHead-3], st[holdHead-2], st[holdHead-1] = phase, uint8(arith.OneIf(x.High)), uint8(len(x.Pairs))
	b := st[holdHead:]
	for _, p := range x.Pairs {
		b[0], b[1] = p.Took, uint8(len(p.Policy))
		le.PutUint16(b[2:], uint16(len(p.Key)))
		n := copy(b[HoldPairHead:], p.Policy)
		n += copy(b[HoldPairHead+n:], p.Key)
		b = b[HoldPairHead+n:]
	}
	if x.grown() {
		le.PutUint64(b, uint64(x.Added))
		le.PutUint64(b[8:], uint64(x.Extensions))
		b = b[grownLen:]
	}
	if x.Else != 0 {
		x.writeSources(b)
	}
}

// validHold reports whether a stored state can be decoded.
func validHold(st []byte) bool {
	if len(st) < holdHead || st[holdHead-3]&^holdBits >= uint8(numHoldPhases) ||
		len(st) > holdHead+MaxHoldBytes+grownLen+elseLen {
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
	total := int64(le.Uint64(st[answerLen+8:]))
	if st[holdHead-3]&holdGrown != 0 {
		if len(b) < grownLen || int64(le.Uint64(b)) < 0 || int64(le.Uint64(b[8:])) < 0 {
			return false
		}
		total += int64(le.Uint64(b))
		b = b[grownLen:]
	}
	if st[holdHead-3]&holdDivided != 0 {
		return validSources(b, int(st[holdHead-1]), total)
	}
	return len(b) == 0
}
