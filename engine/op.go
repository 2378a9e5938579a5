package engine

import "github.com/weir-project/weir/engine/internal/arith"

// Stamp is the time of a decision.
type Stamp struct {
	// NowNs is limiter time in nanoseconds. It never steps; within a table it is
	// clamped so that it never goes back. Positive and below 2^62.
	NowNs int64
	// WallOffsetNs is what to add to limiter time to get the wall clock (Unix
	// nanoseconds, UTC). Only aligned and calendar windows use it.
	WallOffsetNs int64
}

// OpCode says what an Op does.
type OpCode uint8

// The operations.
const (
	OpTake            OpCode = iota // decide under Limit (every RL.* decision)
	OpRelease                       // give back the lease of Holder
	OpRenew                         // keep the lease of Holder for TTLNs from now
	OpRefund                        // give back Cost units
	OpReset                         // forget the limiter (an administrative block stays)
	OpBlock                         // deny every decision for TTLNs (Never: until unblocked); Text is the reason
	OpUnblock                       // lift the block
	OpIncr                          // add to a Counter as Incr says
	OpForget                        // evict the limiter: OpReset, but counted as an eviction; with an ID only its answer
	OpCheck                         // decide under policies: Text for Key, and Also
	OpPolicy                        // change the policy that Key names as Policy says; TTLNs: of an override, 0 for ever
	OpScript                        // do what the script of another library does
	OpReserve                       // as OpCheck, and keep what was taken for a hold named ID, for TTLNs
	OpCommit                        // settle the hold that Key names: Cost is what was used of it
	OpCancel                        // call off the hold that Key names
	OpBlockEverywhere               // as OpBlock, and on every key that ends in '|' and this one; see blocksEverywhere
	OpForgive                       // forget strikes and end penalties of policies: Text for Key, and Also
	OpResetPolicy                   // forget all limiters of a policy for one key; Key names one of them
	NumOps
)

// Op is one operation on one key. Its slices belong to the caller and are not
// kept. The caller has checked every argument against the bounds of this
// package; the engine does not check them again.
type Op struct {
	Code OpCode
	// Partial: OpTake and OpCheck grant as many units as fit, up to Cost; OpBlock and
	// OpUnblock leave a block everywhere as it is.
	Partial bool
	Dry     bool   // OpTake, OpCheck: answer, and change nothing
	High    bool   // OpCheck: may take what policies keep for high priority
	forced  bool   // take what there is no room for too, as far as the algorithm can hold it
	Key     []byte // 1..MaxKeyLen bytes
	Limit   Limit  // OpTake
	Cost    int64  // units, 0..MaxUnits; 0 looks without taking
	// WaitNs lets a TokenBucket run into debt, by at most MaxUnits, when the wait for
	// it is at most this.
	WaitNs int64
	// TTLNs is how long a lease (OpTake of Concurrency, OpRenew), a block or a hold lasts;
	// 0 for a lease and Never for a block mean no end.
	TTLNs int64
	// ID, when not empty, makes the operation happen once: the same ID on the same
	// key within the table's IDLifetime answers what the first one answered.
	// That goes for every answer but OutOfMemory. OpReserve: the name of the hold.
	ID []byte
	// Text is the lease holder (Concurrency, OpRelease, OpRenew), the reason of a block
	// or the policy of OpCheck, OpReserve and OpForgive.
	Text []byte
	// From, when not empty, is the key that a block everywhere of the client's address has:
	// such a block denies the operation whatever its own keys are. OpTake, OpCheck, OpReserve.
	From []byte // 0..MaxFromLen bytes
	Also []Pair // OpCheck, OpReserve, OpForgive: more policies and their keys, together with the first at most MaxPairs
	// Calendar bounds the current window when Limit.Mode is Day, Week, Month or Year.
	Calendar *Calendar
	Incr     *Incr         // OpIncr
	Policy   *PolicyChange // OpPolicy
	Script   *Script       // OpScript
}

// Pair is a policy and the key it is to decide about. A check names no pair twice.
type Pair struct{ Policy, Key []byte }

// Incr is the argument of OpIncr: Redis 8.8's INCREX.
type Incr struct {
	By           int64 // may be negative
	Lower, Upper int64 // inclusive bounds of the value
	Saturate     bool  // bring the value into the bounds instead of refusing
	// Expiry of the counter, as limiter-time durations.
	Expire    ExpireMode
	ExpireNs  int64 // ExpireIn: from now, may be zero or negative (at once)
	OnlyIfNew bool  // set the expiry only where none is set (ENX)
}

// ExpireMode says what OpIncr does with the counter's expiry.
type ExpireMode uint8

// The expiry modes.
const (
	ExpireKeep ExpireMode = iota // leave it
	ExpireIn                     // set it
	ExpireNone                   // take it away (PERSIST)
)

// Status says whether an operation was carried out, and if not, why.
type Status uint8

// The statuses. For every status but OK the other fields of the Decision are
// zero and no state has changed.
const (
	OK              Status = iota
	WrongType              // the key belongs to another algorithm
	OutOfMemory            // a new entry, block of a log or limit does not fit
	TooManyHolders         // the key has MaxHolders leases
	NotRefundable          // the key's algorithm has nothing to refund
	Overflow               // a counter would change by more than 64 bits hold
	UnknownPolicy          // there is no such policy; of a check Pair says which
	PoliciesFull           // the policies would exceed MaxPolicies, MaxPolicyBytes, or one its overrides
	NoHold                 // there is no such hold, or it is over for too long
	OtherTerms             // the hold was made, or settled, on other terms
	BlocksFull             // MaxBlocksEverywhere are in force
	EverywhereStays        // the key has a block everywhere, which a Partial OpBlock or OpUnblock leaves as it is
	PolicyChanged          // a conditional change of a policy found another version
	Abandoned              // another operation of the same batch was refused; see PolicyChange.If
	LayoutTaken            // the layout of another policy makes the same names
	NotInteger             // the key has a byte string that is no whole number
	KeyBlocked             // an administrative block is on a key whose value only its client can judge
	ValueTooLong           // the value would be longer than it may be
)

// Decision answers an Op.
//
// OpTake, OpCheck and OpReserve fill all five numbers as the contract names them. The others answer
// in Allowed: OpRelease, OpRenew, OpReset, OpResetPolicy, OpForget and OpUnblock 1 when there was
// something to act on, else 0; OpBlock 1; OpBlockEverywhere 1, with 1 in Remaining when
// the key was blocked everywhere before; OpRefund 1 when units were given back,
// with the units left in Remaining (-1 for a limiter that is idle); OpIncr the
// applied difference, with the new value in Remaining. OpPolicy answers 1 when the
// policy changed, with its version in Remaining; OpScript 1 unless the script denied
// something, with the rest in ScriptAnswer. OpCommit answers 1, with the least that is
// left of a limit in Remaining (-1 when the policies are gone); OpCancel 1 when the hold
// is cancelled, now or by an earlier OpCancel; OpForgive how many limiters it forgot.
type Decision struct {
	Status Status
	// Pair is the pair of a check (0: Key and Text, i: Also[i-1]) whose policy the other
	// numbers are of, and Part the limit of that policy: the one that binds. NoPart: the
	// policy is disabled or has no limit for the key.
	Pair, Part uint8
	// Locked says which pairs of a check this decision locked out, as bits: strikes reached the
	// last step of one of their limits. Of an OpTake it is 1 or 0. An answer that is remembered
	// for an ID has none.
	Locked uint16
	// Allowed is 1 or 0; with Partial the units granted.
	Allowed int64
	// Remaining is the whole units that could still be taken now.
	Remaining int64
	// RetryMs: denied: after this many milliseconds the same request fits; -1: no
	// wait helps. Allowed: how long to hold the request first.
	RetryMs int64
	// ResetMs is the time until the limiter is idle, -1 if that never comes by itself.
	ResetMs int64
	// Limit is the burst, capacity or maximum in force.
	Limit int64
	// Value is the byte string that OpScript answers, beside its words.
	Value string
}

// weight is how many units a decision is about.
func (op *Op) weight(d *Decision) int64 {
	if op.Partial && d.Allowed > 0 {
		return d.Allowed
	}
	return op.Cost
}

// verdict is whether a decision admitted something.
func (d *Decision) verdict() Verdict {
	if d.Allowed > 0 {
		return Admitted
	}
	return Denied
}

// pair returns what a check asks at a place, and how many there are.
func (op *Op) pair(i int) (Pair, bool) {
	if i == 0 {
		return Pair{Policy: op.Text, Key: op.Key}, true
	}
	if i > len(op.Also) {
		return Pair{}, false
	}
	return op.Also[i-1], true
}

// PairAt returns the pair of a check that Decision.Pair names.
func (op *Op) PairAt(i int) Pair {
	p, _ := op.pair(i)
	return p
}

// counts reports whether the operation is one that statistics count.
func (op *Op) counts() bool { return op.Cost > 0 && !op.Dry }

// ScriptAnswer is what a script answers, out of a Decision: up to four words, each a
// whole number or the bits of a double, as the script has it.
func (d *Decision) ScriptAnswer() [4]int64 {
	return [4]int64{d.Remaining, d.RetryMs, d.ResetMs, d.Limit}
}

// AnswersText reports whether the answer to an operation may have a byte string.
func (op *Op) AnswersText() bool {
	if op.Code != OpScript {
		return false
	}
	switch op.Script.ID {
	case CountGet, TextLook, TextTake, TextTouch:
		return true
	case TextSet, TextAdd:
		return arith.Truncate(op.Script.Args[0])&TextGetOld != 0
	}
	return false
}
