package engine

import "github.com/weir-project/weir/engine/internal/arith"

// Stamp is the time of a decision.
type Stamp struct {
	// NowNs is limiter time in nanoseconds, positive and below 2^62. It never steps. A table clamps it so that it
	// never goes back.
	NowNs int64
	// WallOffsetNs is the difference between the wall clock (Unix nanoseconds, UTC) and limiter time. Only aligned
	// and calendar windows use it.
	WallOffsetNs int64
}

// OpCode selects what an Op does.
type OpCode uint8

// The operations.
const (
	OpTake    OpCode = iota // decide under Limit (every RL.* decision)
	OpRelease               // give back the lease of the holder Text
	OpRenew                 // keep the lease of the holder Text for TTLNs from now
	OpRefund                // give back Cost units
	OpReset                 // remove the limiter (an administrative block stays)
	OpBlock                 // deny every decision for TTLNs (Never: until unblocked); Text is the reason
	OpUnblock               // lift the block
	OpIncr                  // add to a Counter; Incr has the arguments
	OpForget                // evict the limiter, or with an ID the remembered answer to that ID
	OpCheck                 // decide under the policy Text for Key, and under the pairs in Also
	// apply the change in Policy to the policy named Key; TTLNs is the duration of an override, 0 for no end
	OpPolicy
	OpScript          // carry out the script of another library
	OpReserve         // as OpCheck, and keep the units in a hold named ID, for TTLNs
	OpCommit          // complete the hold named Key; Cost is the true cost, or with Keep the cost so far
	OpCancel          // cancel the hold named Key
	OpBlockEverywhere // as OpBlock, also on every key that ends in '|' and Key; see blocksEverywhere
	OpForgive         // remove the strikes and penalties of the policy Text for Key, and of the pairs in Also
	OpResetPolicy     // remove all limiters of a policy for one key; Key is the name of one of these limiters
	// begin an atomic batch that takes the shared items of this group from version WaitNs, after TTLNs batches, to
	// version Cost of the first group; each further operation has the Item of its change in Cost and WaitNs. With
	// Partial: give the first group version Cost; see order
	OpFollow
	// bind ID to the request Asks under Key, and do nothing else: the first group carries out that request
	OpBind
	// take Cost more units under the policies and keys of the hold named Key, whose ttl begins again as TTLNs, or as
	// the OpReserve says if that is 0; ID is ExtensionID of its number
	OpExtend
	// write the events of the hold named Key if it has ended by itself, and no event has told so; see Table.Ended
	OpEnd
	OpCharge // take Cost units under the policy Text for Key, and under the pairs in Also, also if they do not fit
	// remove everything of the database Cost but the blocks everywhere; Key is any key of the group
	OpFlush
	NumOps
)

// Op is one operation on one key. Its slices belong to the caller, and the engine does not keep them. The
// caller has checked every argument against the bounds of this package. The engine does not check them again.
type Op struct {
	Code OpCode
	// Partial makes OpTake, OpCheck and OpExtend grant as many units as fit, up to Cost. It makes OpBlock and OpUnblock
	// refuse to change a block everywhere.
	Partial bool
	Dry     bool // OpTake, OpCheck: answer without changing anything
	High    bool // OpCheck: may take the units that policies reserve for high priority; of blocks: see changeBlocks
	// Keep makes OpReserve keep the units taken if the hold ends by itself. It makes OpCommit keep the hold open: Cost
	// is what was used so far, and the rest stays held. It makes OpBlock leave a block of the key that does not end
	// sooner.
	Keep bool
	// Database is the database of the names in an operation from a client. It is 0 in an operation with stored names,
	// which the methods of Table take: see AppendStored.
	Database uint8
	forced   bool // also take units that do not fit, as far as the algorithm can represent them
	// Else divides the pairs of an OpCheck or OpReserve into up to MaxAlternatives. The first alternative that admits
	// all units pays. With Split, an alternative that does not admit them pays what it has left, and the next ones the
	// rest; together they pay all units or none.
	Else  Alternatives
	Key   []byte // a key of 1..MaxKeyLen bytes, the name of a policy's limiter, or as the OpCode says
	Limit Limit  // OpTake
	Cost  int64  // units, 0..MaxUnits; 0 looks without taking
	// WaitNs lets a TokenBucket go into debt, by as much as it refills within WaitNs and by at most MaxUnits.
	WaitNs int64
	// TTLNs is the duration of a lease (OpTake of Concurrency, OpRenew), a block, a hold or an override. No end is
	// 0 for a lease or an override, and Never for a block.
	TTLNs int64
	// ID is an idempotency key, unless it is empty. A repetition of the request with the same ID returns the first
	// answer, within Options.IDLifetimeNs. A decision that took nothing, and an error, are not repeated but tried
	// again. For OpReserve, ID is the name of the hold.
	ID []byte
	// Asks is what Bind sets. Zero in an operation with an ID, or of a lease: an older version of weir made it, which
	// did not tell a repetition from another request.
	Asks Fingerprint
	// Text is the lease holder (Concurrency, OpRelease, OpRenew), the reason of a block, or the policy of OpCheck,
	// OpReserve, OpForgive and OpCharge.
	Text []byte
	// From is the key that a block everywhere of the client's address would have, or empty. Such a block denies
	// the operation, whatever its own keys are. OpTake, OpCheck and OpReserve use From.
	From []byte // 0..MaxFromLen bytes
	// OpCheck, OpReserve, OpForgive, OpCharge: more policies and keys; at most MaxPairs in total
	Also []Pair
	// Calendar has the bounds of the current window if Limit.Mode is Day, Week, Month or Year.
	Calendar *Calendar
	Incr     *Incr         // OpIncr
	Policy   *PolicyChange // OpPolicy
	Script   *Script       // OpScript
}

// Pair is a policy and the key that it decides about. A check has no pair twice.
type Pair struct{ Policy, Key []byte }

// Incr is the argument of OpIncr: Redis 8.8's INCREX.
type Incr struct {
	By           int64 // may be negative
	Lower, Upper int64 // inclusive bounds of the value
	Saturate     bool  // clamp the value to the bounds instead of refusing
	// Expire selects the expiry of the counter. Times are durations in limiter time.
	Expire    ExpireMode
	ExpireNs  int64 // ExpireIn: from now, may be zero or negative (at once)
	OnlyIfNew bool  // set the expiry only if none is set (ENX)
}

// ExpireMode selects what OpIncr does with the counter's expiry.
type ExpireMode uint8

// The expiry modes.
const (
	ExpireKeep ExpireMode = iota // leave it
	ExpireIn                     // set it
	ExpireNone                   // remove it (PERSIST)
)

// Status reports whether an operation was carried out, and if not, why.
type Status uint8

// The statuses. For every status of the engine but OK no state has changed, and the other fields of the Decision are
// zero, except Pair for UnknownPolicy, and what FirstUse, LeasedUnits, MostBlocks and NextExtension return.
const (
	OK              Status = iota
	WrongType              // the key belongs to another algorithm
	OutOfMemory            // no memory is left for a new entry, a block of a log, or a new limit
	TooManyHolders         // the key has MaxHolders leases, or a limiter of a hold has MaxAllocations
	NotRefundable          // the algorithm cannot give units back, or an OpReserve or an Else has a limit of strikes
	Overflow               // the change of a counter exceeds 64 bits, or a count of a script exceeds MaxUnits
	UnknownPolicy          // the policy does not exist; in a check Pair is the number of its pair
	PoliciesFull           // the policies would exceed MaxPolicies or MaxPolicyBytes, or the policy is not valid
	NoHold                 // the hold does not exist, or its record has expired
	OtherTerms             // a hold, an ID or a holder has other terms: see FirstUse and LeasedUnits
	BlocksFull             // as many blocks everywhere are in force as may be: see MostBlocks
	EverywhereStays        // the key has a block everywhere, which a Partial OpBlock or OpUnblock does not change
	PolicyChanged          // a conditional change of a policy found another version
	Abandoned              // another operation of the same batch was refused; see PolicyChange.If
	LayoutTaken            // the layout of another policy can make the same name
	NotInteger             // the key has a byte string that is not an integer
	KeyBlocked             // a block denies the script, whose answer cannot express a denial
	ValueTooLong           // the value would be longer than allowed

	// NotDecided and the statuses after it, below MoreStatuses, are outcomes of package limiter, and the engine sets
	// none of them. Nodes send statuses to each other, so a number never changes.
	NotDecided
)

// MoreStatuses is the first of the statuses of the engine that are newer than those of package limiter.
const MoreStatuses Status = 64

// The newer statuses.
const (
	HoldEnded  = MoreStatuses + iota // the hold was committed or cancelled, or has ended by itself
	OutOfOrder                       // an extension has another number than the next: see NextExtension
)

// Decision answers an Op. OpTake, OpCheck and OpReserve fill all five numbers. The other operations answer as
// follows:
//
//   - OpRelease, OpRenew, OpReset, OpResetPolicy, OpForget, OpUnblock: Allowed is 1 if there was something to
//     act on, else 0.
//   - OpBlock: Allowed is 1. OpBlockEverywhere: Allowed is 1, and Remaining is 1 if the key had a block
//     everywhere before. Limit of these and of OpUnblock and OpPolicy is the version of the shared items.
//   - OpRefund: Allowed is 1 if units were given back. Remaining is the units left, -1 for an idle limiter.
//   - OpIncr: Allowed is the applied difference, and Remaining the new value.
//   - OpPolicy: Allowed is 1 if the policy changed, and Remaining its version.
//   - OpScript: Allowed is 1 unless the script denied the request. ScriptAnswer returns the rest.
//   - OpCommit: Allowed is 1. Remaining is the fewest units left of a limit, -1 if all policies are gone.
//   - OpCheck, OpReserve: with Else, Value is what Paid returns, unless the request is denied.
//   - OpExtend: as OpCheck, and Value is the decimal number of units that were taken for the hold so far. If the hold
//     has alternatives, a word for the policy and the number of each follow.
//   - OpCancel: Allowed is 1 if the hold is cancelled, now or by an earlier OpCancel.
//   - OpEnd: Allowed is 1 if the hold has ended, and its events are written now.
//   - OpForgive: Allowed is the number of limiters that it reset.
//   - OpCharge: Allowed is 1 if all limits that count units have taken them, and 0 if there was no memory for one of
//     them. Remaining is the fewest units that one of them has left.
//   - OpBind: the answer to the request that the ID is bound to, if the group has it, else Allowed is 1.
type Decision struct {
	Status Status
	// Pair is the pair of a check (0: Key and Text, i: Also[i-1]) whose policy the other numbers describe. Part is
	// the number of that policy's limit that binds. It is NoPart if the key is blocked or has no limit, or if the
	// policy is disabled.
	Pair, Part uint8
	// Locked has a bit for each pair of a check whose key this decision locked out: strikes reached the last step of
	// a limit. For an OpTake it is 1 or 0. An answer that is remembered for an ID has no such bits.
	Locked uint16
	// Allowed is 1 or 0. If Partial is set, it is the number of granted units.
	Allowed int64
	// Remaining is the number of whole units that could still be taken now.
	Remaining int64
	// RetryMs of a denial is the time in milliseconds after which the same request fits, -1 if no wait helps. If
	// the request is admitted, it is how long the caller must delay the request.
	RetryMs int64
	// ResetMs is the time until the limiter is idle, -1 if it does not become idle by itself.
	ResetMs int64
	// Limit is the burst, capacity or maximum in force.
	Limit int64
	// Value is the byte string that OpScript answers in addition to the words of ScriptAnswer, or what the list above
	// says.
	Value string
}

// pair returns the i-th pair of a check, and whether the check has as many.
func (op *Op) pair(i int) (Pair, bool) {
	if i == 0 {
		return Pair{Policy: op.Text, Key: op.Key}, true
	}
	if i > len(op.Also) {
		return Pair{}, false
	}
	return op.Also[i-1], true
}

// PairAt returns the pair of a check by its Decision.Pair.
func (op *Op) PairAt(i int) Pair {
	p, _ := op.pair(i)
	return p
}

// counts reports whether statistics count the operation.
func (op *Op) counts() bool { return op.Cost > 0 && !op.Dry }

// ScriptAnswer returns the answer of a script in a Decision: up to four words. Each word is an integer or the
// bits of a double, depending on the script.
func (d *Decision) ScriptAnswer() [4]int64 {
	return [4]int64{d.Remaining, d.RetryMs, d.ResetMs, d.Limit}
}

// AnswersText reports whether the answer to an operation may have a byte string (Decision.Value).
func (op *Op) AnswersText() bool {
	if op.Code != OpScript {
		return op.Code == OpExtend || op.Else != 0
	}
	switch op.Script.ID {
	case CountGet, TextLook, TextTake, TextTouch:
		return true
	case TextSet, TextAdd:
		return arith.Truncate(op.Script.Args[0])&TextGetOld != 0
	}
	return false
}
