package service

import (
	"errors"
	"fmt"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/quote"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/limits"
	"github.com/weir-project/weir/server/arg"
	"github.com/weir-project/weir/server/resp"
)

// Errors of logins and decisions, for every protocol. Texts that clients compare are identical to Redis' texts.
const (
	ErrNoAuth     resp.Error = "NOAUTH Authentication required."
	ErrWrongPass  resp.Error = "WRONGPASS invalid username-password pair or user is disabled."
	ErrNoKey      resp.Error = "NOPERM No permissions to access a key"
	ErrLoginsWait resp.Error = "ERR too many failed logins from this address, try again later"
	ErrWrongType  resp.Error = "WRONGTYPE the key belongs to another algorithm until it is idle; TYPE shows the " +
		"algorithm, RL.RESET frees the key"
	errOutOfMemory resp.Error = "OOM memory is at --max-memory and no limiter could be evicted (weir never evicts " +
		"blocks and holds, and nothing with --when-full deny); nothing was counted, raise --max-memory"
	errTooManyHolders resp.Error = "ERR the key has 1000 leases, the maximum for one key"
	ErrNotRefundable  resp.Error = "ERR the algorithm of the key does not support refunds"
	ErrTooManyHolds   resp.Error = "ERR a limit of the policies has 1048576 holds on this key, the maximum, or 1000 " +
		"in a cluster whose nodes are not all upgraded; nothing was taken"
	ErrStrikesHeld resp.Error = "ERR a policy with STRIKE counts failures, so it cannot be held: use RL.CHECK"
	ErrStrikesElse resp.Error = "ERR a policy with STRIKE counts failures, so it cannot be one of several that " +
		"pay: use RL.CHECK without ELSE"
	errNoHold resp.Error = "NOHOLD there is no hold with this id: it was denied, it ended more than --id-lifetime " +
		"ago, or a server that runs alone forgot it in a crash; nothing more was charged"
	ErrHoldEnded resp.Error = "HOLDENDED the hold has ended: it was committed or cancelled, or its ttl has passed; " +
		"nothing was changed: RL.COMMIT reports what was used"
	errPolicyGone    resp.Error = "ERR a policy of the hold was deleted, nothing was taken"
	errHoldFull      resp.Error = "ERR the units of a hold must be at most 2^53 together, nothing was taken"
	errHoldCrossSlot resp.Error = "CROSSSLOT the id of the hold and its keys are in different slots, nothing was " +
		"counted: give the id the hash tag of the key, like ID {42}req-1 for the key {42}"
	errOtherTerms  resp.Error = "IDUSED the id names a hold with other arguments, nothing was taken"
	ErrOtherActual resp.Error = "ERR the hold is settled with another actual, or has reported a greater one " +
		"with KEEP; nothing was changed"
	ErrEverywhereStays resp.Error = "NOPERM this key has a block EVERYWHERE: only a user with permission for all " +
		"keys may change or lift it, and in a cluster with several groups not in a transaction"
	ErrKeyBlocked resp.Error = "ERR the key is blocked, and weir cannot deny in the form that this client stores; " +
		"nothing was read or changed: RL.UNBLOCK lifts the block"
	ErrValueTooLong  resp.Error = "ERR string exceeds maximum allowed size (--max-value-bytes)"
	ErrOverflow      resp.Error = "ERR increment or decrement would overflow"
	ErrPolicyChanged resp.Error = "CHANGED the policy does not have the version that IF gives; nothing was changed: " +
		"read it again with RL.POLICY GET"
	ErrLayoutTaken resp.Error = "ERR LAYOUT must not make names that the layout of another policy makes: begin or " +
		"end it differently; nothing was changed"
	ErrAbandoned    resp.Error = "ERR nothing was done, because another command of this transaction was refused"
	errPoliciesFull resp.Error = "ERR at most 1000 policies of 16 MiB together, and per policy 1000 overrides of " +
		"keys and 32 of patterns; nothing was changed"
)

// ErrorText returns the text of an error reply. No other function maps errors to texts.
func ErrorText(err error) string {
	var reply resp.Error
	var wrong limits.Error
	switch {
	case errors.As(err, &reply):
		return string(reply)
	case errors.As(err, &wrong):
		return "ERR " + string(wrong)
	}
	return limiter.OutcomeOf(err).Reply(err)
}

// StatusErrors maps the status of an operation that the engine refused to its error reply.
var StatusErrors = [...]resp.Error{
	engine.WrongType:       ErrWrongType,
	engine.OutOfMemory:     errOutOfMemory,
	engine.TooManyHolders:  errTooManyHolders,
	engine.NotRefundable:   ErrNotRefundable,
	engine.Overflow:        ErrOverflow,
	engine.PoliciesFull:    errPoliciesFull,
	engine.NoHold:          errNoHold,
	engine.OtherTerms:      errOtherTerms,
	engine.EverywhereStays: ErrEverywhereStays,
	engine.PolicyChanged:   ErrPolicyChanged,
	engine.Abandoned:       ErrAbandoned,
	engine.LayoutTaken:     ErrLayoutTaken,
	engine.NotInteger:      arg.ErrNotInteger,
	engine.KeyBlocked:      ErrKeyBlocked,
	engine.ValueTooLong:    ErrValueTooLong,
	engine.HoldEnded:       ErrHoldEnded,
}

// StatusError returns the error reply for an operation that the engine did not execute.
func StatusError(op *engine.Op, d *engine.Decision) error {
	switch outcome := limiter.OutcomeOfStatus(d.Status); {
	case outcome == limiter.ErrSomeGroups:
		return resp.Error(fmt.Sprintf("UNKNOWN the change is made, and %d of %d groups have it: the others get it by "+
			"themselves, once they have a leader", d.Allowed, d.Limit))
	case d.Status == engine.BlocksFull:
		return resp.Error(fmt.Sprintf("ERR at most %d blocks EVERYWHERE may be in force, and this one was not set: "+
			"RL.UNBLOCK one, or block single keys", d.MostBlocks()))
	case outcome == limiter.ErrCrossSlot && op.Code == engine.OpReserve:
		return errHoldCrossSlot
	case outcome != 0:
		return resp.Error(outcome.Reply(outcome))
	case op.Code == engine.OpExtend && d.Status == engine.UnknownPolicy:
		return errPolicyGone
	case op.Code == engine.OpExtend && d.Status == engine.Overflow:
		return errHoldFull
	case d.Status == engine.OutOfOrder:
		return resp.Error(fmt.Sprintf("SEQGAP the next extension of this hold is SEQ %d, not %d, nothing was taken",
			d.NextExtension(), op.Extension()))
	case d.Status == engine.TooManyHolders && ofHold(op):
		return ErrTooManyHolds
	case d.Status == engine.NotRefundable && ofHold(op):
		return ErrStrikesHeld
	case d.Status == engine.NotRefundable && op.Code == engine.OpCheck:
		return ErrStrikesElse
	case d.Status == engine.OtherTerms && op.Code == engine.OpCommit:
		return ErrOtherActual
	case d.Status == engine.OtherTerms && op.Code == engine.OpTake && d.LeasedUnits() > 0:
		return resp.Error(fmt.Sprintf("ERR COST must be %d, which is what this holder holds of the key, not %d; "+
			"nothing was changed: RL.RELEASE it first, or use another HOLDER", d.LeasedUnits(), op.Cost))
	case d.Status == engine.OtherTerms && op.Code != engine.OpReserve:
		return idUsed(op, d)
	case d.Status != engine.UnknownPolicy:
		return StatusErrors[d.Status]
	}
	return NoPolicy(UnknownPolicy(op, d))
}

// ofHold reports whether the operation takes units for a hold.
func ofHold(op *engine.Op) bool { return op.Code == engine.OpReserve || op.Code == engine.OpExtend }

// UnknownPolicy returns the policy name because of which an operation got the status UnknownPolicy.
func UnknownPolicy(op *engine.Op, d *engine.Decision) []byte {
	switch op.Code {
	case engine.OpCheck, engine.OpReserve, engine.OpForgive, engine.OpCharge:
		return op.PairAt(int(d.Pair)).Policy
	}
	return op.Key
}

// NoPolicy returns the error reply for an unknown policy name.
func NoPolicy(name []byte) error {
	return resp.Error("ERR there is no policy " + quote.Text(name) + ", RL.POLICY LIST names them all")
}
