package commands

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/quote"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/limits"
	"github.com/weir-project/weir/server/resp"
	"github.com/weir-project/weir/server/service"
)

const staleField = "In a cluster also `stale_ms`: how old the answer may be, 0 unless `READONLY` was sent."

func lookCommands() []*command {
	inspectReply := "A map, empty for an idle key without a block (under `READONLY` in a cluster it has only " +
		"`stale_ms`). Of the limiter: `algorithm`, `rule` (the limit used last, as it is typed), `limit`, `used` " +
		"(units, rounded up), `remaining`, " +
		"`idle_in_ms` (-1: never by itself), `bytes`. Of a block: `blocked` (1 or 0), `blocked_ms` (-1: no end), " +
		"`blocked_by` (its key, another one for a block `EVERYWHERE`), `reason`. `penalty_ms` is the rest of a " +
		"strike penalty, `holders` the number of holders of slots, or of holds on the limit of a policy. " +
		"A token bucket also has `tokens` (its tokens, with their fraction, to a billionth) and `lastRefill` (Unix " +
		"milliseconds of the read: weir refills continuously, up to then). " + staleField
	return []*command{
		{
			name: "RL.INSPECT", arity: 2, syntax: "key", group: groupLook, flags: "readonly fast", keys: oneKey,
			summary: "Describe one limiter", reply: inspectReply,
			shown: []example{{"RL.TOKENBUCKET user:42 10/s 100 COST 30", "1 70 0 3000 100", ""},
				{"RL.INSPECT user:42",
					"algorithm tokenbucket rule 10/s 100 limit 100 used 30 remaining 70 idle_in_ms 3000 blocked 0 " +
						"blocked_ms 0 blocked_by  reason  penalty_ms 0 holders 0 bytes * tokens 70 lastRefill *", ""}},
			read: keyState(runInspect),
		},
		{
			name: "RL.EXPLAIN", arity: -2, syntax: "command [argument ...]", group: groupLook,
			flags: "readonly fast movablekeys", carried: func(args [][]byte) [][]byte { return args[1:] },
			summary: "Preview the answer of a decision, and why, without taking anything",
			details: "Takes any decision command with its arguments, but no `ID`. Its user needs permission for " +
				"`RL.EXPLAIN` and for the keys, but not for the decision: nothing is decided.",
			params: []param{{"command", "a decision, for example `RL.TOKENBUCKET user:42 10/s 100 COST 5`"}},
			reply: "A map with the five integers by name, `algorithm`, `rule`, and `why` in words. If no wait helps, " +
				"also `never`: `cost` (the limit never has as many units), `used` (used up, and units never return by " +
				"themselves) or `block`. Of a check with `ELSE` also `paid`: what each alternative would pay. " + staleField,
			shown: []example{{"RL.EXPLAIN RL.TOKENBUCKET user:42 10/s 100 COST 101",
				"allowed 0 remaining 100 retry_after_ms -1 reset_after_ms 0 limit 100 algorithm tokenbucket rule " +
					"10/s 100 why the cost of 101 is above the limit of 100: no wait helps never cost", ""}},
			read: explainState(runExplain),
		},
		topCommand(),
		{
			name: "HGETALL", arity: 2, syntax: "key", group: groupLook, flags: "readonly fast", keys: oneKey,
			summary: "The fields of a limiter: the same as RL.INSPECT", read: keyState(runHashAll),
			reply: "As of RL.INSPECT. Of a hash that a recognised script keeps: its fields and their values, as " +
				"Redis shows them.",
		},
		{
			name: "HGET", arity: 3, syntax: "key field", group: groupLook, flags: "readonly fast", keys: oneKey,
			summary: "One of the fields that HGETALL shows", reply: "Its value, or nothing.",
			read: keyState(runHashGet),
		},
		{
			name: "HMGET", arity: -3, syntax: "key field [field ...]", group: groupLook,
			flags: "readonly fast", keys: oneKey,
			summary: "Some of the fields that HGETALL shows",
			reply:   "Their values, nothing for a field that is not there.", read: keyState(runHashGetSome),
			cost: "O(n) in the fields asked for",
		},
	}
}

func runInspect(s *Session, v limiter.View, args [][]byte) {
	info, ok := inspectNamed(v, args[1])
	if !ok && !info.Blocked {
		s.absent()
		return
	}
	fields := fieldsOf(&info)
	s.Map(len(fields) + s.staleFields())
	for _, f := range fields {
		if f.number {
			s.PairInt(f.name, f.n)
		} else {
			s.Pair(f.name, f.text)
		}
	}
	s.stale()
}

// runHashAll is HGETALL. It answers the fields of a hash, and the answer of RL.INSPECT for any other key.
func runHashAll(s *Session, v limiter.View, args [][]byte) {
	info, ok := inspectNamed(v, args[1])
	if !ok || len(info.Hash) == 0 {
		runInspect(s, v, args)
		return
	}
	s.Map(len(info.Hash))
	for _, f := range info.Hash {
		s.Pair(f.Name, f.Value)
	}
}

func runHashGet(s *Session, v limiter.View, args [][]byte) {
	writeHashValue(s.Reply, hashFields(v, args[1]), args[2])
}

func runHashGetSome(s *Session, v limiter.View, args [][]byte) {
	hash := hashFields(v, args[1])
	s.Array(len(args) - 2)
	for _, name := range args[2:] {
		writeHashValue(s.Reply, hash, name)
	}
}

// hashFields returns the fields that HGETALL shows for a key, without stale_ms.
func hashFields(v limiter.View, key []byte) []engine.HashField {
	info, ok := inspectNamed(v, key)
	switch {
	case !ok && !info.Blocked:
		return nil
	case len(info.Hash) > 0:
		return info.Hash
	}
	var hash []engine.HashField
	for _, f := range fieldsOf(&info) {
		if f.number {
			f.text = strconv.FormatInt(f.n, 10)
		}
		hash = append(hash, engine.HashField{Name: f.name, Value: f.text})
	}
	return hash
}

func writeHashValue(w resp.Reply, hash []engine.HashField, name []byte) {
	for _, f := range hash {
		if f.Name == string(name) {
			w.Bulk(f.Value)
			return
		}
	}
	w.Null()
}

// field is one field of the description of a limiter: a text or a number.
type field struct {
	name, text string
	n          int64
	number     bool
}

// fieldsOf describes a limiter.
func fieldsOf(info *engine.Info) []field {
	number := func(name string, n int64) field { return field{name: name, n: n, number: true} }
	fields := []field{
		{name: "algorithm", text: info.Algorithm.String()},
		{name: "rule", text: limits.Rule(info.Limit)},
		number("limit", info.Limit.Max),
		number("used", info.Used),
		number("remaining", info.Remaining),
		number("idle_in_ms", info.IdleInMs),
		number("blocked", int64(oneIf(info.Blocked))),
		number("blocked_ms", info.BlockedMs),
		{name: "blocked_by", text: info.BlockedBy},
		{name: "reason", text: info.Reason},
		number("penalty_ms", info.PenaltyMs),
		number("holders", int64(info.Holders)),
		number("bytes", int64(info.Bytes)),
	}
	if info.Algorithm == engine.TokenBucket {
		fields = append(fields, field{name: "tokens", text: info.Tokens}, number("lastRefill", info.AtMs))
	}
	return fields
}

const errExplainWithID resp.Error = "ERR RL.EXPLAIN accepts no ID: it shows what a new request would get, and a " +
	"request with an ID may get the answer of an earlier one; leave ID out"

func runExplain(s *Session, v limiter.View, args [][]byte) {
	_, b, err := planDecision(s, s.lookup(args[0]), args, engine.OpTake, engine.OpCheck, engine.OpReserve)
	if !s.guarded(err) {
		return
	}
	defer s.srv.Batches.Put(b)
	op, ds := &b.Ops[0], b.Decisions()
	if len(op.ID) > 0 && op.Code != engine.OpReserve {
		s.guarded(errExplainWithID)
		return
	}
	if op.Code == engine.OpReserve { // only the check of a hold can be explained
		op.Code = engine.OpCheck
	}
	op.Dry = true
	err = s.srv.Limiter.Decide(b.Ops, ds)
	if err == nil && ds[0].Status != engine.OK {
		err = s.statusError(op, &ds[0])
	}
	if !s.guarded(err) {
		return
	}
	if op.Code == engine.OpCheck {
		writeCheckExplanation(s, v, op, &ds[0])
		return
	}
	info, _ := v.Inspect(op.Key)
	writeExplanation(s, v, op, &ds[0], info)
}

// planDecision plans the command cmd in the arguments of by, which is RL.WAIT or RL.EXPLAIN. cmd must make one
// operation with one of these codes. The user needs permission for cmd, unless by only reads. The caller puts the
// batch back into Batches.
func planDecision(s *Session, by *command, args [][]byte, codes ...engine.OpCode) (cmd *command,
	b *service.Batch, err error) {
	args = by.carried(args)
	if cmd, err = s.srv.table.resolve(args); err != nil {
		if cmd == nil {
			err = notDecision(args[0])
		}
		return nil, nil, nearCommands(s, args, err)
	}
	if cmd.plan == nil {
		return nil, nil, notDecision(args[0])
	}
	if by.read.run == nil {
		if err = s.allowed(cmd, args); err != nil {
			return nil, nil, err
		}
	}
	err = s.plan(cmd, args)
	b, s.batch = s.batch, nil
	if err == nil && (len(b.Ops) != 1 || !slices.Contains(codes, b.Ops[0].Code)) {
		err = notDecision(args[0])
	}
	if err != nil {
		s.srv.Batches.Put(b)
		return nil, nil, err
	}
	return cmd, b, nil
}

func notDecision(name []byte) error {
	return limits.Bad("command", "must be a decision, like RL.TOKENBUCKET", name)
}

func writeExplanation(s *Session, v limiter.View, op *engine.Op, d *engine.Decision, info engine.Info) {
	never := neverOf(s, op, d)
	s.Map(8 + len(never) + s.staleFields())
	writeFive(s, d)
	s.Pair("algorithm", op.Limit.Algorithm.String())
	s.Pair("rule", limits.Rule(op.Limit))
	reason := why(op, d, info)
	if !info.Blocked && fromBlocked(v, op) {
		reason = fromText(v, op)
	}
	s.Pair("why", reason)
	writeNever(s, never)
	s.stale()
}

// writeFive writes the five integers of a decision by name.
func writeFive(s *Session, d *engine.Decision) {
	s.PairInt("allowed", d.Allowed)
	s.PairInt("remaining", d.Remaining)
	s.PairInt("retry_after_ms", d.RetryMs)
	s.PairInt("reset_after_ms", d.ResetMs)
	s.PairInt("limit", d.Limit)
}

// neverOf returns the word of the reason why no wait helps, or nothing if a wait helps.
func neverOf(s *Session, op *engine.Op, d *engine.Decision) []string {
	if d.Allowed > 0 || d.RetryMs >= 0 {
		return nil
	}
	return []string{s.srv.QuotaOf("", op, d).Never.Word()}
}

func writeNever(s *Session, never []string) {
	for _, word := range never {
		s.Pair("never", word)
	}
}

// why describes the reason of a decision in words.
func why(op *engine.Op, d *engine.Decision, info engine.Info) string {
	switch {
	case info.Blocked:
		return blockText(op.Key, &info)
	case d.Allowed == 0 && info.PenaltyMs > 0:
		return "too many strikes: the key is blocked" + forHowLong(info.PenaltyMs)
	case d.Allowed == 0 && op.Limit.Algorithm == engine.Strike:
		return fmt.Sprintf("this strike reaches a threshold and blocks the key for %d ms", d.RetryMs)
	case d.Allowed == 0 && op.Cost > d.Limit && d.RetryMs < 0:
		return fmt.Sprintf("the cost of %d is above the limit of %d: no wait helps", op.Cost, d.Limit)
	case d.Allowed == 0 && d.RetryMs < 0:
		return fmt.Sprintf("it needs %s, but %d of %d are left, and units never return by themselves", units(op.Cost),
			d.Remaining, d.Limit)
	case d.Allowed == 0:
		return fmt.Sprintf("it needs %s, but %d of %d are left; it fits in %d ms", units(op.Cost), d.Remaining,
			d.Limit, d.RetryMs)
	case op.Limit.Strikes&engine.Attempts != 0 && op.Cost > 0 && d.Remaining == 0 && !lastStep(&op.Limit).Delay:
		return "this attempt is admitted, and is the last: the key is then blocked"
	case op.Limit.Algorithm == engine.Strike && d.RetryMs > 0:
		return fmt.Sprintf("it is admitted, and its response must be delayed for %d ms", d.RetryMs)
	case d.RetryMs > 0:
		return fmt.Sprintf("it fits after a delay of %d ms", d.RetryMs)
	case op.Cost == 0:
		return fmt.Sprintf("a read takes nothing; %d of %d are left", d.Remaining, d.Limit)
	case op.Partial && d.Allowed < op.Cost:
		return fmt.Sprintf("it asks for %s, and %d fit", units(op.Cost), d.Allowed)
	default:
		return fmt.Sprintf("it needs %s, which leaves %d of %d", units(op.Cost), d.Remaining, d.Limit)
	}
}

func lastStep(l *engine.Limit) engine.Step { return l.Steps.At(l.Steps.Len() - 1) }

// blockText describes the block that denies the decisions on a key.
func blockText(key []byte, info *engine.Info) string {
	by := ""
	if info.BlockedBy != string(key) {
		by = " by RL.BLOCK " + quote.Text([]byte(info.BlockedBy)) + " EVERYWHERE"
	}
	return "the key is blocked" + by + forHowLong(info.BlockedMs) + reasonText(info.Reason)
}

// fromBlocked reports whether a block everywhere denies the decisions from the client address of an operation.
func fromBlocked(v limiter.View, op *engine.Op) bool { return v.FromBlock(op.From).By != "" }

// fromText describes the block of an address that denies an operation.
func fromText(v limiter.View, op *engine.Op) string {
	block := v.FromBlock(op.From)
	return "its address is blocked by RL.BLOCK " + quote.Text([]byte(block.By)) + " EVERYWHERE" +
		forHowLong(block.LeftMs) + reasonText(block.Reason)
}

func units(n int64) string {
	if n == 1 {
		return "1 unit"
	}
	return fmt.Sprintf("%d units", n)
}

func forHowLong(ms int64) string {
	if ms < 0 {
		return " until RL.UNBLOCK lifts it"
	}
	return fmt.Sprintf(" for another %d ms", ms)
}

func reasonText(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}
