package server

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-project/weir/engine"
)

const staleField = "In a cluster also `stale_ms`: how old the answer may be, 0 unless `READONLY` was sent."

func lookCommands() []*command {
	inspectReply := "A map, empty for an idle key that nothing blocks (under `READONLY` in a cluster it has `stale_ms` alone): `algorithm`, `rule` (the limit used last, as one types it), `limit`, `used` (units, rounded up), `remaining`, " +
		"`idle_in_ms` (-1: never by itself), `blocked` (1 or 0), `blocked_ms` (-1: no end), `blocked_by` (the key of the block: another one for a block `EVERYWHERE`), `reason`, `penalty_ms` (what is left of a strike penalty), `holders` (slots held, or holds on the limit of a policy), `bytes`. " + staleField
	return []*command{
		{
			name: "RL.INSPECT", arity: 2, syntax: "key", group: groupLook, flags: "readonly fast", keys: oneKey,
			summary: "Describe one limiter", reply: inspectReply,
			shown: []example{{"RL.TOKENBUCKET user:42 10/s 100 COST 30", "1 70 0 3000 100", ""},
				{"RL.INSPECT user:42", "algorithm tokenbucket rule 10/s 100 limit 100 used 30 remaining 70 idle_in_ms 3000 blocked 0 blocked_ms 0 blocked_by  reason  penalty_ms 0 holders 0 bytes *", ""}},
			run: runInspect,
		},
		{
			name: "RL.EXPLAIN", arity: -2, syntax: "command [argument ...]", group: groupLook, flags: "readonly fast movablekeys", carried: func(args [][]byte) [][]byte { return args[1:] },
			summary: "What a decision would answer now, and why, without taking anything",
			details: "Takes any decision command with its arguments. Its user needs permission for `RL.EXPLAIN` and for the keys, but not for the decision: nothing is decided.",
			params:  []param{{"command", "a decision, for example `RL.TOKENBUCKET user:42 10/s 100 COST 5`"}},
			reply:   "A map: the five integers by name, `algorithm`, `rule`, and `why` in words. " + staleField,
			shown:   []example{{"RL.EXPLAIN RL.TOKENBUCKET user:42 10/s 100 COST 101", "allowed 0 remaining 100 retry_after_ms -1 reset_after_ms 0 limit 100 algorithm tokenbucket rule 10/s 100 why the cost of 101 is above the limit of 100: no wait helps", ""}},
			run:     runExplain,
		},
		topCommand(),
		{
			name: "HGETALL", arity: 2, syntax: "key", group: groupLook, flags: "readonly fast", keys: oneKey,
			summary: "The same as RL.INSPECT", reply: inspectReply, run: runInspect,
		},
	}
}

func runInspect(s *session, args [][]byte) {
	info, ok := s.inspect(args[1])
	if !ok && !info.Blocked {
		s.absent()
		return
	}
	s.mapOf(13 + s.staleFields())
	s.pair("algorithm", info.Algorithm.String())
	s.pair("rule", ruleText(info.Limit))
	s.pairInt("limit", info.Limit.Max)
	s.pairInt("used", info.Used)
	s.pairInt("remaining", info.Remaining)
	s.pairInt("idle_in_ms", info.IdleInMs)
	s.pairInt("blocked", int64(oneIf(info.Blocked)))
	s.pairInt("blocked_ms", info.BlockedMs)
	s.pair("blocked_by", info.BlockedBy)
	s.pair("reason", info.Reason)
	s.pairInt("penalty_ms", info.PenaltyMs)
	s.pairInt("holders", int64(info.Holders))
	s.pairInt("bytes", int64(info.Bytes))
	s.stale()
}

// ruleText writes a limit as its decision command takes it.
func ruleText(l engine.Limit) string {
	switch l.Algorithm {
	case engine.TokenBucket, engine.LeakyBucket:
		return fmt.Sprintf("%s %d", l.Rate, l.Max)
	case engine.FixedWindow:
		return fixedText(l)
	case engine.SlidingLog, engine.SlidingCounter:
		return fmt.Sprintf("%s %d", engine.FormatDuration(l.WindowNs), l.Max)
	case engine.Concurrency:
		return fmt.Sprint(l.Max)
	case engine.Strike:
		var b strings.Builder
		b.WriteString(engine.FormatDuration(l.WindowNs))
		for i := range l.Steps.Len() {
			step := l.Steps.At(i)
			fmt.Fprintf(&b, " %d %s", step.Threshold, engine.FormatDuration(step.PenaltyNs))
		}
		return b.String()
	}
	return ""
}

func fixedText(l engine.Limit) string {
	switch l.Mode {
	case engine.Aligned:
		return fmt.Sprintf("%s %d", engine.FormatDuration(l.WindowNs), l.Max)
	case engine.FromFirst:
		return fmt.Sprintf("%s %d FIRST", engine.FormatDuration(l.WindowNs), l.Max)
	}
	return fmt.Sprintf("%s %d", windowWords[l.Mode], l.Max)
}

func runExplain(s *session, args [][]byte) {
	_, b, err := s.planDecision(s.lookup(args[0]), args, engine.OpTake, engine.OpCheck, engine.OpReserve)
	if !s.guarded(err) {
		return
	}
	defer s.srv.state.batches.put(b)
	op, ds := &b.ops[0], b.room()
	if op.Code == engine.OpReserve { // what there is to explain is its check
		op.Code = engine.OpCheck
	}
	op.Dry = true
	err = s.srv.lim.Decide(b.ops, ds)
	if err == nil && ds[0].Status != engine.OK {
		err = s.statusError(op, &ds[0])
	}
	if !s.guarded(err) {
		return
	}
	if op.Code == engine.OpCheck {
		s.explainCheck(op, &ds[0])
		return
	}
	info, _ := s.inspect(op.Key)
	s.explanation(op, &ds[0], info)
}

// planDecision makes the operation of the command that args of by carry, which must be a
// decision with one of these codes, in a batch that the caller gives back. The user must be
// allowed to send it, unless by only looks.
func (s *session) planDecision(by *command, args [][]byte, codes ...engine.OpCode) (cmd *command, b *batch, err error) {
	args = by.carried(args)
	if cmd, err = s.srv.state.table.resolve(args); err != nil {
		if cmd == nil {
			err = notDecision(args[0])
		}
		return nil, nil, s.nearCommands(args, err)
	}
	if cmd.plan == nil {
		return nil, nil, notDecision(args[0])
	}
	if !by.reads {
		if err = s.allowed(cmd, args); err != nil {
			return nil, nil, err
		}
	}
	err = s.plan(cmd, args)
	b, s.batch = s.batch, nil
	if err == nil && (len(b.ops) != 1 || !slices.Contains(codes, b.ops[0].Code)) {
		err = notDecision(args[0])
	}
	if err != nil {
		s.srv.state.batches.put(b)
		return nil, nil, err
	}
	return cmd, b, nil
}

func notDecision(name []byte) error {
	return badArgument("command", "must be a decision, like RL.TOKENBUCKET", name)
}

func (s *session) explanation(op *engine.Op, d *engine.Decision, info engine.Info) {
	s.mapOf(8 + s.staleFields())
	s.pairInt("allowed", d.Allowed)
	s.pairInt("remaining", d.Remaining)
	s.pairInt("retry_after_ms", d.RetryMs)
	s.pairInt("reset_after_ms", d.ResetMs)
	s.pairInt("limit", d.Limit)
	s.pair("algorithm", op.Limit.Algorithm.String())
	s.pair("rule", ruleText(op.Limit))
	s.pair("why", why(op, d, info))
	s.stale()
}

// why says in words what made the decision.
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
		return fmt.Sprintf("it needs %s, %d of %d are left, and none comes back by itself", units(op.Cost), d.Remaining, d.Limit)
	case d.Allowed == 0:
		return fmt.Sprintf("it needs %s, %d of %d are left; it fits in %d ms", units(op.Cost), d.Remaining, d.Limit, d.RetryMs)
	case d.RetryMs > 0:
		return fmt.Sprintf("it fits when it is held for %d ms first", d.RetryMs)
	case op.Cost == 0:
		return fmt.Sprintf("a look takes nothing; %d of %d are left", d.Remaining, d.Limit)
	case op.Partial && d.Allowed < op.Cost:
		return fmt.Sprintf("it asks for %s, and %d fit", units(op.Cost), d.Allowed)
	default:
		return fmt.Sprintf("it needs %s, which leaves %d of %d", units(op.Cost), d.Remaining, d.Limit)
	}
}

// blockText says which block denies the decisions on a key.
func blockText(key []byte, info *engine.Info) string {
	by := ""
	if info.BlockedBy != string(key) {
		by = " by RL.BLOCK " + quote([]byte(info.BlockedBy)) + " EVERYWHERE"
	}
	return "the key is blocked" + by + forHowLong(info.BlockedMs) + reasonText(info.Reason)
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
