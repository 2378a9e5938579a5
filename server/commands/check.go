package commands

import (
	"fmt"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/quote"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/limits"
	"github.com/weir-project/weir/server/arg"
	"github.com/weir-project/weir/server/resp"
)

func checkCommand() *command {
	return &command{
		name: "RL.CHECK", arity: -3,
		syntax: "policy key [policy key ...] [ELSE policy key [policy key ...] ...] [SPLIT] [COST n] [PARTIAL] " +
			"[PRIORITY high|normal] [FROM address] [ID token]",
		group: groupPolicy, flags: decideFlags, keys: keySpec{2, -1, 2},
		summary: "Decide under named policies: all of their limits, or none",
		details: "Takes the cost from every limit of every named policy, each for its own key, in one atomic step. " +
			"When one of them denies, nothing is taken from any. With `RL.CHECK org acme team core user 42` an " +
			"organisation, a team and a user are limited at once, and the answer names the policy that " +
			"binds.\n\nUp to 16 policies, none of them twice for one key. Each limit of a policy counts each key " +
			"by itself, in a limiter named `policy|<policy>|<number of the limit, from 0>|<key>`, which `SCAN`, " +
			"`RL.INSPECT`, `TTL` and `RL.RESET` accept. The decision commands refuse such keys.\n\n" +
			"`ELSE` begins an alternative, with policies and keys of its own: the first alternative that admits the whole " +
			"cost pays. With `SPLIT` an alternative that does not admit it pays what it has left, and the next ones the " +
			"rest, all or nothing together. A block of any of the keys denies the request. See " +
			"[policies](policies.md#give-a-team-a-budget).",
		params: []param{{"policy", "a policy made with `RL.POLICY SET`"}, paramKey, paramElse, paramSplit, paramCost,
			paramPartial,
			{"PRIORITY high|normal",
				"high may also take the reserved part of the policies (`RESERVED`); normal unless given"}, paramFrom,
			{"ID token", "idempotency key: the same request with the same token within 60 seconds gets the first " +
				"answer and takes nothing. Another request with this token on any of the keys is an error of " +
				"`IDUSED`, also the same pairs in another order. A denial is not remembered; 1 to 64 bytes"}},
		reply: "The five integers of the limit that binds, and the name of its policy. Denied: the limit with the " +
			"longest wait. Admitted: the limit with the fewest units left. " +
			"`retry_after_ms` is how long to delay the request first, the longest that any limit asks for. With " +
			"`PARTIAL` `allowed` is the units granted. " +
			"A policy that is disabled, and an override without limit, answer as if nothing had been used. " +
			"A check that is a strike and reaches a threshold is denied, with the penalty as the wait, and still " +
			"counts. With `ATTEMPTS` it is admitted, and `RL.FORGIVE` reports that it succeeded. " +
			"With `ELSE` the limit is one of the last alternative that pays, or of a denied check one of the " +
			"alternative that admits it soonest. A seventh element of an admitted check is then an array: for each " +
			"alternative its first policy, and the units that it paid.",
		cost: "O(n) in the limits looked at",
		shown: []example{
			{"RL.POLICY SET chat LIMIT TOKENBUCKET 10/s 100 LIMIT FIXED 1h 1000 FIRST", "1",
				"ten a second, and a thousand an hour"},
			{"RL.POLICY SET bot LIMIT TOKENBUCKET 30/s 30", "1", "the bot as a whole"},
			{"RL.CHECK chat 42 bot global", "1 29 0 34 30 bot", "of all limits the bot's has the least left"},
			{"RL.CHECK chat 42 bot global COST 30", "0 29 34 34 30 bot",
				"denied by the bot's: nothing is taken from the chat's either"},
			{"RL.INSPECT policy|chat|1|42",
				"algorithm fixed rule 1h 1000 FIRST limit 1000 used 1 remaining 999 idle_in_ms 3600000 blocked 0 " +
					"blocked_ms 0 blocked_by  reason  penalty_ms 0 holders 0 bytes *", ""},
			{"RL.CHECK bot global ELSE chat 42 SPLIT COST 40", "1 88 0 1200 100 chat bot 29 chat 11",
				"the bot pays the 29 that it has left, the chat the rest"},
		},
		plan: planCheck, answer: answerCheck,
	}
}

func planCheck(s *Session, args [][]byte) error {
	op, err := s.textOp(engine.OpCheck, args[2], "policy", args[1], engine.MaxPolicyLen)
	if err != nil {
		return err
	}
	op.Cost = 1
	rest := args[3:]
	if len(rest) == 0 {
		return nil
	}
	if rest, err = morePairs(s, op, rest); err != nil {
		return err
	}
	if rest, err = alternatives(s, op, rest); err != nil {
		return err
	}
	_, _, err = arg.Options(op, rest, checkOptions)
	return err
}

// morePairs reads policies and their keys up to ELSE or the first option.
func morePairs(s *Session, op *engine.Op, args [][]byte) (rest [][]byte, err error) {
	first := len(s.batch.Pairs) - len(op.Also)
	options := checkOptions
	if op.Code == engine.OpReserve {
		options = reserveOptions
	}
	for !endsPairs(args, options) {
		if len(args) == 1 {
			return nil, resp.Error(
				"ERR policy " + quote.Text(args[0]) + " needs a key: policies and keys come in pairs")
		}
		pair := engine.Pair{Policy: args[0], Key: args[1]}
		if err := checkPair(op, s.batch.Pairs[first:], pair); err != nil {
			return nil, err
		}
		s.batch.Pairs = append(s.batch.Pairs, pair)
		args = args[2:]
	}
	if n := len(s.batch.Pairs); n > first {
		op.Also = s.batch.Pairs[first:n:n]
	}
	return args, nil
}

func checkPair(op *engine.Op, before []engine.Pair, pair engine.Pair) error {
	if err := arg.CheckText("policy", pair.Policy, engine.MaxPolicyLen); err != nil {
		return err
	}
	if err := arg.CheckKey(pair.Key); err != nil {
		return err
	}
	if engine.Reserved(pair.Key) {
		return arg.ErrReservedKey
	}
	if len(before)+2 > engine.MaxPairs {
		return resp.Error(fmt.Sprintf("ERR a check names at most %d policies", engine.MaxPairs))
	}
	twice := samePair(pair, engine.Pair{Policy: op.Text, Key: op.Key})
	for _, other := range before {
		twice = twice || samePair(pair, other)
	}
	if twice {
		return resp.Error("ERR policy " + quote.Text(pair.Policy) + " is named twice for the key " +
			quote.Text(pair.Key))
	}
	return nil
}

func samePair(a, b engine.Pair) bool {
	return string(a.Policy) == string(b.Policy) && string(a.Key) == string(b.Key)
}

func answerCheck(s *Session, ops []engine.Op, ds []engine.Decision) {
	_, paid := ds[0].Paid()
	s.decision(1+elements(paid), &ds[0])
	s.BulkBytes(ops[0].PairAt(int(ds[0].Pair)).Policy)
	writePaid(s, paid)
}

// writeCheckExplanation answers RL.EXPLAIN for a check: the answer of the check, and the limit that binds.
func writeCheckExplanation(s *Session, v limiter.View, op *engine.Op, d *engine.Decision) {
	pair := op.PairAt(int(d.Pair))
	never := neverOf(s, op, d)
	paid := explainPaid(op, d)
	s.Map(10 + len(paid) + len(never) + s.staleFields())
	writeFive(s, d)
	for _, text := range paid {
		s.Pair("paid", text)
	}
	s.Pair("policy", string(pair.Policy))
	s.Pair("key", string(pair.Key))
	name, rule, reason := "", "", ""
	info, _ := v.Inspect(pair.Key)
	p := v.Policies().Get(pair.Policy)
	switch {
	case info.Blocked:
		reason = blockText(pair.Key, &info)
	case fromBlocked(v, op):
		reason = fromText(v, op)
	case p == nil || int(d.Part) >= len(p.LimitsFor(s.srv.Limiter.Now(), pair.Key)):
		reason = "no limit applies: the policy is disabled, or an override removes its limits"
	default:
		limit := p.LimitsFor(s.srv.Limiter.Now(), pair.Key)[d.Part]
		name, rule = string(p.NameOf(int(d.Part), pair.Key)), limits.Text(&limit)
		info = engine.Info{}
		if op.Limit = limit.Limit; limit.Limit.Algorithm == engine.Strike {
			info, _ = v.Inspect([]byte(name))
		}
		told := *d
		told.Limit = limit.Limit.Max // even if the policy reports another limit
		reason = why(op, &told, info)
		asked := *op
		asked.Key = pair.Key
		if d.Allowed == 0 && d.RetryMs < 0 && op.Cost <= told.Limit && !p.CanFit(s.srv.Limiter.Now(), &asked) {
			reason = fmt.Sprintf("the cost of %d is above the part of the limit of %d that this priority may take: "+
				"no wait helps", op.Cost, told.Limit)
		}
		if p.Reserved > 0 && !op.High {
			reason += "; a part of the limit is reserved for PRIORITY high"
		}
		if p.Shadow {
			reason += "; the policy is in shadow mode and denies nothing"
		}
	}
	s.Pair("limiter", name)
	s.Pair("rule", rule)
	s.Pair("why", reason)
	writeNever(s, never)
	s.stale()
}
