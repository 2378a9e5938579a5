package server

import (
	"errors"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/arg"
	"github.com/weir-project/weir/server/resp"
)

// The error table. Texts that clients compare with are Redis' own.
const (
	errNoAuth       resp.Error = "NOAUTH Authentication required."
	errHelloNoAuth  resp.Error = "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time"
	errWrongPass    resp.Error = "WRONGPASS invalid username-password pair or user is disabled."
	errNoPassword   resp.Error = "ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?"
	errNoKey        resp.Error = "NOPERM No permissions to access a key"
	errLoginsWait   resp.Error = "ERR too many failed logins from this address, try again in a while"
	errNoUsersFile  resp.Error = "ERR this server has no users file to load, it was started without --users-file"
	errNoProto      resp.Error = "NOPROTO unsupported protocol version: protover must be 2 or 3"
	errProtoInteger resp.Error = "ERR Protocol version is not an integer or out of range: protover must be 2 or 3"
	errDBIndex      resp.Error = "ERR DB index is out of range: db must be 0, there is one"
	errNoSuchClient resp.Error = "ERR No such client"
	errNoCluster    resp.Error = "ERR This instance has cluster support disabled"
	errBadSlot      resp.Error = "ERR Invalid or out of range slot: slot must be a whole number from 0 to 16383"

	errMultiNested   resp.Error = "ERR MULTI calls can not be nested"
	errExecNoMulti   resp.Error = "ERR EXEC without MULTI"
	errDiscardMulti  resp.Error = "ERR DISCARD without MULTI"
	errExecAbort     resp.Error = "EXECABORT Transaction discarded because of previous errors."
	errNotInMulti    resp.Error = "ERR Command not allowed inside a transaction"
	errMultiTooLong  resp.Error = "ERR a transaction holds at most 1024 operations, 1 MiB of arguments, each counting 32 bytes more than it has, and answers with 4 MiB of strings, each counted as --max-value-bytes"
	errExecTooLong   resp.Error = "ERR the replies of this transaction are longer than 1 MiB, this command was not carried out"
	errWatch         resp.Error = "ERR WATCH is not supported: MULTI and EXEC decide everything in one atomic step, there is nothing to watch"
	errPublish       resp.Error = "ERR PUBLISH is not supported: channels carry the server's own events only"
	errTooManyTopics resp.Error = "ERR a client may subscribe to at most 128 channels and patterns"

	errPolicyChanged   resp.Error = "CHANGED the policy has another version than IF says; nothing was changed: read it again with RL.POLICY GET"
	errLayoutTaken     resp.Error = "ERR LAYOUT must not make names that the layout of another policy makes as well: begin or end it otherwise; nothing was changed"
	errAbandoned       resp.Error = "ERR nothing was done, because another command of this transaction was refused"
	errPoliciesFull    resp.Error = "ERR at most 1000 policies of 16 MiB together, and per policy 1000 overrides of keys and 32 of patterns; nothing was changed"
	errWrongType       resp.Error = "WRONGTYPE the key belongs to another algorithm until it is idle; TYPE tells which, RL.RESET frees it"
	errOutOfMemory     resp.Error = "OOM memory is at --max-memory and nothing could be evicted for this (blocks and holds never are, with --when-full deny nothing is); nothing was counted, raise --max-memory"
	errTooManyHolders  resp.Error = "ERR the key has 1000 leases, the most one key may have"
	errNotRefundable   resp.Error = "ERR the key's algorithm has nothing to refund"
	errTooManyHolds    resp.Error = "ERR a limit of the policies has 1000 holds on this key, the most it may have"
	errStrikesHeld     resp.Error = "ERR a policy with STRIKE counts what has failed and can not be held, RL.CHECK counts it"
	errNoHold          resp.Error = "NOHOLD there is no hold with this id: it was denied, or has been over for more than 60 seconds; nothing was charged"
	errOtherTerms      resp.Error = "ERR the id names a hold on other terms, nothing was taken"
	errOtherActual     resp.Error = "ERR the hold is settled with another actual, nothing was changed"
	errBlocksFull      resp.Error = "ERR at most 1000 blocks EVERYWHERE may be in force, and this one was not set: RL.UNBLOCK one, or block single keys"
	errEverywhereStays resp.Error = "NOPERM this key has a block EVERYWHERE: only a user who may use all keys may change or lift it"
	errKeyBlocked      resp.Error = "ERR the key is blocked, and what is kept under it only its client can judge; nothing was read or changed: RL.UNBLOCK lifts the block"
	errValueTooLong    resp.Error = "ERR string exceeds maximum allowed size (--max-value-bytes)"
	errOverflow        resp.Error = "ERR increment or decrement would overflow"
	errTooManyKeys     resp.Error = "ERR KEYS matches more than 10000 keys, use SCAN"
	errPatternLong     resp.Error = "ERR pattern must be at most 512 bytes"

	errNoDebug      resp.Error = "ERR DEBUG is not enabled on this server"
	errRealClock    resp.Error = "ERR the clock is a real one, only a test clock can be moved"
	errClockBack    resp.Error = "ERR the clock cannot be set back"
	errNoShutdown   resp.Error = "ERR SHUTDOWN is not possible on this server, stop its process instead"
	errNotStopping  resp.Error = "ERR No shutdown in progress."
	errSaving       resp.Error = "ERR Background save already in progress"
	errNoBackup     resp.Error = "ERR no backup is under way on this connection, begin with WEIR.BACKUP START; one that nobody reads from for a minute ends"
	errBackingUp    resp.Error = "ERR another backup is under way, only one at a time"
	errCannotBackUp resp.Error = "ERR this server keeps nothing that could be backed up"
	errNoConfigFile resp.Error = "ERR The server is running without a config file"
	errCaching      resp.Error = "ERR CLIENT CACHING is not supported: decisions are never cached by clients"
	errByFloat      resp.Error = "ERR BYFLOAT is not supported: weir counts whole units, use BYINT"
	errDialectRate  resp.Error = "ERR count per period must be at least 1 unit in 366 days and at most 9007199254740992 units a nanosecond"
)

// errorText is the one place where an error becomes the text of a reply.
func errorText(err error) string {
	var reply resp.Error
	switch {
	case errors.As(err, &reply):
		return string(reply)
	case errors.Is(err, limiter.ErrNoDisk), errors.Is(err, errBackupFailed), errors.Is(err, limiter.ErrOldMember), errors.Is(err, limiter.ErrTooLarge):
		return "ERR " + err.Error()
	case errors.Is(err, limiter.ErrTryAgain): // why is for the log
		return "TRYAGAIN " + limiter.ErrTryAgain.Error()
	case errors.Is(err, limiter.ErrNotLeader):
		return "TRYAGAIN " + err.Error()
	case errors.Is(err, limiter.ErrClusterDown):
		return "CLUSTERDOWN " + err.Error()
	case errors.Is(err, limiter.ErrOverloaded):
		return "OVERLOADED " + err.Error()
	default:
		return "UNKNOWN " + err.Error()
	}
}

// statusErrors says what the client reads when the engine did not carry an
// operation out.
var statusErrors = [...]resp.Error{
	engine.WrongType:       errWrongType,
	engine.OutOfMemory:     errOutOfMemory,
	engine.TooManyHolders:  errTooManyHolders,
	engine.NotRefundable:   errNotRefundable,
	engine.Overflow:        errOverflow,
	engine.PoliciesFull:    errPoliciesFull,
	engine.NoHold:          errNoHold,
	engine.OtherTerms:      errOtherTerms,
	engine.BlocksFull:      errBlocksFull,
	engine.EverywhereStays: errEverywhereStays,
	engine.PolicyChanged:   errPolicyChanged,
	engine.Abandoned:       errAbandoned,
	engine.LayoutTaken:     errLayoutTaken,
	engine.NotInteger:      arg.ErrNotInteger,
	engine.KeyBlocked:      errKeyBlocked,
	engine.ValueTooLong:    errValueTooLong,
}

// statusError is the reply to an operation that the engine did not carry out.
func statusError(op *engine.Op, d *engine.Decision) error {
	switch {
	case d.Status == engine.TooManyHolders && op.Code == engine.OpReserve:
		return errTooManyHolds
	case d.Status == engine.NotRefundable && op.Code == engine.OpReserve:
		return errStrikesHeld
	case d.Status == engine.OtherTerms && op.Code == engine.OpCommit:
		return errOtherActual
	case d.Status != engine.UnknownPolicy:
		return statusErrors[d.Status]
	}
	return noPolicy(unknownPolicy(op, d))
}

// unknownPolicy is the name that an operation gave to no policy.
func unknownPolicy(op *engine.Op, d *engine.Decision) []byte {
	switch op.Code {
	case engine.OpCheck, engine.OpReserve, engine.OpForgive:
		return op.PairAt(int(d.Pair)).Policy
	}
	return op.Key
}

// wrongArity is the error about the number of a command's arguments.
func wrongArity(cmd *command) error { return arg.WrongCount(cmd.full, cmd.usage()) }

// syntaxError is Redis' own text, and the usage behind it.
func syntaxError(cmd *command) error { return arg.ErrSyntax + resp.Error(": "+cmd.usage()) }

// unknownCommand is Redis' own text, its limits of 128 characters included.
func unknownCommand(args [][]byte) error {
	const most = 128
	text := "ERR unknown command '" + resp.Printable(args[0], most) + "', with args beginning with: "
	room := most
	for _, a := range args[1:] {
		if room <= 0 {
			break
		}
		shown := resp.Printable(a, room)
		text += "'" + shown + "' "
		room -= len(shown) + len("'' ")
	}
	return resp.Error(text)
}
