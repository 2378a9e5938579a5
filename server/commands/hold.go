package commands

import (
	"crypto/rand"
	"fmt"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/engine/hashslot"
	"github.com/weir-project/weir/limits"
	"github.com/weir-project/weir/server/arg"
	"github.com/weir-project/weir/server/resp"
)

func holdCommands() []*command {
	return append(append(reserveCommands(), openHoldCommands()...), holdsCommand())
}

func reserveCommands() []*command {
	return []*command{
		{
			name: "RL.RESERVE", arity: -5,
			syntax: "policy key n ttl [AND policy key [policy key ...]] [ELSE policy key [policy key ...] ...] " +
				"[SPLIT] [PRIORITY high|normal] [FROM address] [EXPIRE return|take] [ID id]",
			group: groupPolicy, flags: decideFlags, keys: keySpec{2, 2, 1},
			summary: "Hold units for a request whose true cost is not known yet",
			details: "Takes `n` units as `RL.CHECK` does, from every limit of every named policy or from none. It " +
				"holds them until `RL.COMMIT` reports the used units or " +
				"`RL.CANCEL` returns them, and `RL.EXTEND` takes more. A hold that is neither committed nor cancelled " +
				"ends by itself after `ttl`. It then gives back what was not reported as used, or with `EXPIRE take` " +
				"nothing.\n\n" +
				"A retry of the same request gets the first answer and holds nothing more, until 60 seconds after " +
				"the hold ended. A denied request left " +
				"no state and may be sent again. See [policies](policies.md#holds).\n\n" +
				"`ELSE` and `SPLIT` say who pays, as for `RL.CHECK`. The hold keeps what each alternative paid, and so " +
				"decides what is given back: the last alternative that paid gets it first. It also pays what " +
				"`RL.COMMIT` reports beyond the hold. See [who pays](policies.md#give-a-team-a-budget).\n\n" +
				"In a cluster with [several groups](clustering.md#several-raft-groups) the id and all keys must be " +
				"in one hash slot, else the answer is `CROSSSLOT`: `RL.RESERVE tpm {acme} 4000 2m ID {acme}:req-1`.",
			params: []param{{"policy", "a policy made with `RL.POLICY SET`"}, paramKey,
				{"n", "units to hold, from each of the policies; 1 to 2^53"},
				{"ttl", "when the hold ends by itself: a duration longer than the request may take, up to 366 days"},
				{"AND policy key", "more policies and their keys. All of a request are at most 16, and 800 bytes " +
					"together, four for each pair and 24 for each of several alternatives included"},
				paramElse, paramSplit,
				{"PRIORITY high|normal",
					"high may also take the reserved part of the policies (`RESERVED`); normal unless given"},
				{"EXPIRE return|take", "what happens to the units of a hold that ends by itself. They are " +
					"given back, or with take count as used, because the work may have been done"},
				{"ID id", "the name of the hold, 1 to 64 bytes; the server makes one unless given. Give one: " +
					"without it a repetition after a lost connection is another hold"}},
			reply: "The five integers as `RL.CHECK` answers them, and the id. A denied request took nothing and has " +
				"null in place of the id. With `ELSE` a seventh element is an array: for each alternative its first " +
				"policy, and the units that it paid.",
			cost: "O(n) in the limits looked at",
			shown: []example{
				{"RL.POLICY SET tpm LIMIT TOKENBUCKET 90000/m 90000", "1", "tokens a minute"},
				{"RL.RESERVE tpm org:acme 4000 2m ID req-1", "1 86000 0 2667 90000 req-1", "at most 4000 tokens"},
				{"RL.COMMIT req-1 1250", "88750", "it took 1250: 2750 are given back"},
				{"RL.POLICY SET allowance LIMIT FIXED FOREVER 100", "1", ""},
				{"RL.POLICY SET credits LIMIT FIXED FOREVER 50", "1", ""},
				{"RL.RESERVE allowance acme 120 2m ELSE credits acme SPLIT ID req-2",
					"1 30 0 -1 50 req-2 allowance 100 credits 20", "the allowance has 100 of 120"},
				{"RL.COMMIT req-2 105", "45", "15 are given back to the credits"},
			},
			plan: planReserve, answer: answerReserve,
		},
	}
}

// openHoldCommands are the commands that name a hold.
func openHoldCommands() []*command {
	paramID := param{"id", "the hold, as `RL.RESERVE` was given or answered it"}
	return []*command{
		{
			name: "RL.COMMIT", arity: -3, syntax: "id actual [KEEP]",
			group: groupCorrect, flags: "write fast", keys: oneKey,
			summary: "Complete a hold with the actual cost",
			details: "A cost below the hold gives the rest back. A cost above it is taken even if a limit does not " +
				"allow it, because it has been used. A retry within 60 seconds gets the same answer and changes " +
				"nothing. When the hold has ended or was cancelled, it has given everything back. Then all of " +
				"`actual` is taken now, except for what was reported with `KEEP`. A hold with `EXPIRE take` has kept " +
				"its units, and only what is above them is taken.\n\n" +
				"With `KEEP` the hold goes on: `actual` is what the request has used so far. So much is never given " +
				"back, and the rest stays held.",
			params: []param{paramID, {"actual", "the units used since `RL.RESERVE`, 0 to 2^53; not less than before"},
				{"KEEP", "the request runs on: report what it has used so far"}},
			reply: "The units left of the limit with the fewest left, or -1 when the policies are gone; of a hold " +
				"with alternatives, of the last one that paid. With `RECORD`, events say what each paid. An error of " +
				"`NOHOLD` when there is no such hold: it was " +
				"denied, or ended more than `--id-lifetime` ago; with `KEEP` of `HOLDENDED` when it has ended.",
			cost: "O(n log h) in limits and holds",
			plan: planCommit, answer: answerRemaining,
			shown: []example{{"RL.POLICY SET tpm LIMIT TOKENBUCKET 90000/m 90000", "1", ""},
				{"RL.RESERVE tpm org:acme 4000 2m ID req-1", "1 86000 0 2667 90000 req-1", ""},
				{"RL.COMMIT req-1 5000", "85000", "1000 more than were held"},
				{"RL.COMMIT req-1 5000", "85000", "once"}},
		},
		{
			name: "RL.EXTEND", arity: -5, syntax: "id n SEQ k [TTL duration] [PARTIAL]",
			group: groupPolicy, flags: decideFlags, keys: oneKey,
			summary: "Hold more units for a request that runs",
			details: "Takes `n` more units under the policies and keys of a hold, from every limit or from none. If they " +
				"are taken, the ttl of the hold begins again. If the request is denied, nothing changes. A hold with " +
				"alternatives (`ELSE`) asks them again, in their order.\n\n" +
				"`k` counts the extensions of the hold: 1, 2, 3 and so on. The same `k` with the same arguments gets the " +
				"first answer for 60 seconds and takes nothing more. A denied extension does not count: its `k` is the next.",
			params: []param{paramID, {"n", "more units to hold, 0 to 2^53; 0 only begins the ttl again"},
				{"SEQ k", "the number of the extension, 1 to 2^53"},
				{"TTL duration", "when the hold ends by itself from now on; as `RL.RESERVE` says unless given"},
				{"PARTIAL", "take as many units as fit, if at least one does; the first integer is their number"}},
			reply: "The five integers as `RL.CHECK` answers them, and the units that were taken for the hold so far. A " +
				"hold with alternatives adds an array of what each paid so far, as for `RL.RESERVE`. An " +
				"error of `NOHOLD` when there is no such hold, `HOLDENDED` when it has ended, and `SEQGAP` when `k` is not " +
				"the next number.",
			cost: "O(n log h) in limits and holds",
			shown: []example{
				{"RL.POLICY SET tpm LIMIT FIXED FOREVER 1000", "1", ""},
				{"RL.RESERVE tpm org:acme 100 2m ID req-1", "1 900 0 -1 1000 req-1", ""},
				{"RL.EXTEND req-1 300 SEQ 1", "1 600 0 -1 1000 400", "400 are held"},
				{"RL.EXTEND req-1 300 SEQ 1", "1 600 0 -1 1000 400", "a retry takes nothing"},
				{"RL.EXTEND req-1 800 SEQ 2", "0 600 -1 -1 1000 400", "denied: 400 are still held"},
				{"RL.COMMIT req-1 350 KEEP", "600", "350 are used, 50 held"},
				{"RL.COMMIT req-1 360", "640", "40 are given back"},
			},
			plan: planExtend, answer: answerExtend,
		},
		{
			name: "RL.CANCEL", arity: 2, syntax: "id", group: groupCorrect, flags: "write fast", keys: oneKey,
			summary: "Cancel a hold: nothing was used",
			params:  []param{paramID},
			reply: "1 when the hold is cancelled, also by an earlier RL.CANCEL within 60 seconds; 0 when there is " +
				"none, or it has ended or was committed.",
			cost: "O(n log h) in limits and holds",
			shown: []example{{"RL.POLICY SET tpm LIMIT TOKENBUCKET 90000/m 90000", "1", ""},
				{"RL.RESERVE tpm org:acme 4000 2m ID req-1", "1 86000 0 2667 90000 req-1", ""},
				{"RL.CANCEL req-1", "1", ""}, {"RL.CHECK tpm org:acme COST 0", "1 90000 0 0 90000 tpm", ""}},
			plan: planCancel, answer: answerAllowed,
		},
	}
}

func answerReserve(s *Session, ops []engine.Op, ds []engine.Decision) {
	_, paid := ds[0].Paid()
	s.decision(1+elements(paid), &ds[0])
	if ds[0].Allowed == 0 {
		s.Null()
		return
	}
	s.BulkBytes(ops[0].ID)
	writePaid(s, paid)
}

// The following functions turn the arguments of a command on holds into its operation.

func planReserve(s *Session, args [][]byte) error {
	op, err := s.textOp(engine.OpReserve, args[2], "policy", args[1], engine.MaxPolicyLen)
	if err != nil {
		return err
	}
	if op.Cost, err = limits.Units("n", args[3], 1, engine.MaxUnits); err != nil {
		return err
	}
	if op.TTLNs, err = limits.Span("ttl", args[4]); err != nil {
		return err
	}
	rest := args[5:]
	if len(rest) > 0 && limits.Is(rest[0], "AND") {
		if rest, err = morePairs(s, op, rest[1:]); err != nil {
			return err
		}
		if len(op.Also) == 0 {
			return resp.Error("ERR AND needs a policy and a key")
		}
	}
	if rest, err = alternatives(s, op, rest); err != nil {
		return err
	}
	if n := op.HoldBytes(); n > engine.MaxHoldBytes {
		return resp.Error(fmt.Sprintf("ERR the policies and keys of a hold must be at most %d bytes together, four "+
			"for each pair included%s, not %d", engine.MaxHoldBytes, withElse(op), n))
	}
	switch _, _, err = arg.Options(op, rest, reserveOptions); {
	case err != nil:
		return err
	case op.ID == nil:
		op.ID = newHoldID(op.Key)
	}
	return arg.CheckHoldID(op.ID)
}

// newHoldID returns an unguessable id for a hold. It is made before the request is replicated, so that every node uses
// the same id. It has a hash tag, because a hold must be in the slot of its key.
func newHoldID(key []byte) []byte {
	return []byte("{" + hashslot.Tag(hashslot.Of(key)) + "}" + rand.Text())
}

func planCommit(s *Session, args [][]byte) (err error) {
	op, err := holdOp(s, engine.OpCommit, args[1])
	if err == nil {
		op.Cost, err = limits.Units("actual", args[2], 0, engine.MaxUnits)
	}
	if err == nil {
		_, _, err = arg.Options(op, args[3:], limits.Keep)
	}
	return err
}

func planExtend(s *Session, args [][]byte) error {
	op, err := holdOp(s, engine.OpExtend, args[1])
	if err != nil {
		return err
	}
	if op.Cost, err = limits.Units("n", args[2], 0, engine.MaxUnits); err != nil {
		return err
	}
	seen, _, err := arg.Options(op, args[3:], limits.Sequence|limits.TTL|limits.Partial)
	if err == nil && seen&limits.Sequence == 0 {
		err = resp.Error("ERR SEQ k is missing: the number of this extension of the hold, 1 for the first")
	}
	return err
}

func answerExtend(s *Session, _ []engine.Op, ds []engine.Decision) {
	held, paid := ds[0].Paid()
	s.decision(1+elements(paid), &ds[0])
	s.Int(held)
	writePaid(s, paid)
}

func planCancel(s *Session, args [][]byte) error {
	_, err := holdOp(s, engine.OpCancel, args[1])
	return err
}

// holdOp begins an operation on a hold.
func holdOp(s *Session, code engine.OpCode, id []byte) (*engine.Op, error) {
	if err := arg.CheckHoldID(id); err != nil {
		return nil, err
	}
	op := s.batch.Next()
	op.Code, op.Key = code, id
	return op, nil
}
