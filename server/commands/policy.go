package commands

import (
	"slices"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/limits"
	"github.com/weir-project/weir/server/policytext"
	"github.com/weir-project/weir/server/service"
)

var paramPolicy = param{"name", "the policy: 1 to 64 letters, digits and -_.:"}

var paramIf = param{"IF version",
	"only if the policy has this version, 0 for no policy. Otherwise the error is `CHANGED`, and `MULTI` does nothing"}

const versionReply = "The version of the policy: 1 more if the policy changed."

const forgetsLater = "each part of the table forgets at its next use, O(n) in its keys"

func policyCommands() []*command {
	policy := &command{
		name: "RL.POLICY", arity: -2, group: groupPolicy, flags: "write fast", summary: "Named limits, for RL.CHECK",
		details: "Policies are part of the state: they are replicated and saved with it, and `FLUSHALL` keeps " +
			"them. A decision sees a policy either wholly before a change or wholly after it.",
		subs: []*command{
			policySetCommand(), policyOverrideCommand(),
			{name: "GET", arity: 3, syntax: "name", flags: "readonly fast", summary: "Describe a policy",
				params: []param{paramPolicy},
				reply: "A map: `name`, `version`, `limits` as they are typed, `overrides`, `shadow` and `disabled` " +
					"(1 or 0), `retry_after_ms`, `reserved`, the counts of " +
					"checks on this node, `owner` (empty without one), `layout`, `report` (`burst` or a " +
					"duration), and `record` (1 or 0). An override has the pattern, its limits (none for UNLIMITED), and its remaining " +
					"milliseconds (-1 for ever). The counts are `admitted`, `denied`, and `shadowed` for checks " +
					"that a shadow would have denied. " + staleField,
				shown: []example{{"RL.POLICY SET login LIMIT FIXED 1m 5 FIRST RETRYAFTER 60s", "1", ""},
					{"RL.POLICY GET login",
						"name login version 1 limits FIXED 1m 5 FIRST shadow 0 disabled 0 retry_after_ms 60000 " +
							"reserved 0% overrides  admitted 0 denied 0 shadowed 0 owner  layout  report burst " +
							"record 0", ""}},
				read: baseState(runPolicyGet)},
			{name: "LIST", arity: -2, syntax: "[OWNER owner]", flags: "readonly fast",
				summary: "The names of all policies, in order",
				params:  []param{{"OWNER owner", "only those of this owner; `NONE`: only those of nobody"}},
				read:    baseState(runPolicyList), cost: "O(n) in the policies"},
			policyChange(&command{name: "DEL", flags: "write", summary: "Delete a policy, and forget its usage",
				cost:   "O(1); " + forgetsLater,
				params: []param{paramPolicy, paramIf}, reply: "1, or 0 when there is no such policy.",
				answer: answerDeleted}),
			policyChange(&command{name: "ENABLE", flags: "write fast", summary: "Let a policy decide again",
				params: []param{paramPolicy}, reply: versionReply,
				answer: answerRemaining}),
			policyChange(&command{name: "DISABLE", flags: "write fast",
				summary: "Let a policy admit everything, without counting", params: []param{paramPolicy},
				reply:  versionReply,
				answer: answerRemaining}),
			policyChange(&command{name: "SHADOW", flags: "write fast",
				summary: "Let a policy decide and count, but deny nothing",
				params:  []param{paramPolicy, {"ON|OFF", "begin or end it"}}, reply: versionReply,
				answer: answerRemaining}),
		},
	}
	return append([]*command{checkCommand(), policy}, holdCommands()...)
}

// policyChange completes the row of a subcommand that changes a policy with the arity, the syntax and the parser of
// package policytext.
func policyChange(cmd *command) *command {
	c := policytext.Find([]byte(cmd.name))
	cmd.arity, cmd.syntax = c.Arity, c.Syntax
	cmd.plan = func(s *Session, args [][]byte) error { return c.Read(s.batch.Next(), args) }
	return cmd
}

func policySetCommand() *command {
	return policyChange(&command{
		name: "SET", flags: "write", cost: "O(1); with RESET, or with fewer limits than before, " + forgetsLater,
		summary: "Make a policy, or give it other terms",
		details: "A limit has the arguments of its decision command, without key. The limits are `TOKENBUCKET rate " +
			"burst [MAXWAIT duration]`, `LEAKYBUCKET rate capacity`, `FIXED window max [FIRST] [TZ zone] [NOTIFY " +
			"threshold ...]`, " +
			"`SLIDING window max`, `SLIDINGCOUNTER window max`, `STRIKE window threshold [DELAY] penalty " +
			"[threshold [DELAY] penalty ...] [ATTEMPTS] [EXTEND]`. A check takes from all limits of a policy or " +
			"from none. From a change on the new limits count, for idle keys as well, and what was used stays used, " +
			"limit by limit, in their order. Another algorithm [starts empty](policies.md#usage). `RESET` forgets " +
			"usage. " +
			"Overrides stay in both cases, and so does the owner unless `OWNER` names another. `IF` makes a change " +
			"conditional. A transaction with a conditional change is all or nothing. When one of its changes of " +
			"policies is refused, every other command that decides or changes state answers an error and does " +
			"nothing. `weir policy apply` uses this. In a cluster with [several " +
			"groups](clustering.md#several-raft-groups) a transaction that changes a policy may hold only changes " +
			"of policies and blocks `EVERYWHERE`, otherwise EXEC answers `CROSSSLOT`.",
		params: []param{paramPolicy, {"LIMIT algorithm argument", "one limit; up to 8"},
			{"SHADOW", "decide and count, but deny nothing"}, {"DISABLED", "admit everything, without counting"},
			{"RETRYAFTER duration", "denials say to wait at least this"},
			{"RESERVED part", "the part of each limit that only `PRIORITY high` may take, like `20%`: background " +
				"traffic is shed first"},
			{"LAYOUT layout", "the name under which `KEYS`, `GET`, `HGETALL`, `TTL`, `DEL` and others know the " +
				"limiters of the policy, like `rate-limit:{key}:{policy}`: `{key}` once, `{policy}` any number of " +
				"times, up to 128 bytes besides the key. " +
				"Two policies may not have layouts that make the same name, unless one layout is more specific"},
			{"REPORT per", "the integer `limit` that checks answer for a bucket: the units that its rate gives in " +
				"this time, at least 1, or with `BURST` its size; `BURST` unless given"},
			{"RECORD", "write an [event](policies.md#events) when a hold is settled or expires, or strikes lock a " +
				"key out"},
			{"OWNER owner", "label the policy with the team whose file it comes from: 1 to 64 letters, digits and " +
				"-_.:, or `NONE` for no owner"},
			{"KEEP usage|RESET", "keep or forget what was used; kept unless given"}, paramIf},
		reply: versionReply,
		shown: []example{
			{"RL.POLICY SET api LIMIT TOKENBUCKET 10/s 20 LIMIT SLIDING 1d 1000 RESERVED 25%", "1", ""},
			{"RL.CHECK api 42 COST 12", "1 3 0 1200 20 api", "of twenty five are kept"},
			{"RL.CHECK api 42 COST 4", "0 3 100 1200 20 api", ""},
			{"RL.CHECK api 42 COST 4 PRIORITY high", "1 4 0 1600 20 api", ""},
		},
		answer: answerRemaining,
	})
}

func policyOverrideCommand() *command {
	return policyChange(&command{
		name: "OVERRIDE", flags: "write fast",
		summary: "Give some keys other limits",
		details: "The exact key counts first, then the longest pattern that matches (`*`, `?`, `[a-z]`, `\\`). " +
			"Limits replace the policy's limits, in their order, and keep the usage of the key.",
		params: []param{paramPolicy, {"pattern", "a key, or a pattern of keys"},
			{"LIMIT algorithm argument", "as in RL.POLICY SET"},
			{"UNLIMITED", "no limit for these keys"}, {"NONE", "take the override back"},
			{"TTL duration", "how long it applies; for ever unless given"}, paramIf},
		reply: versionReply,
		cost:  "O(n) in the overrides of the policy",
		shown: []example{
			{"RL.POLICY SET chat LIMIT TOKENBUCKET 1/s 5", "1", ""},
			{"RL.POLICY OVERRIDE chat vip:* LIMIT TOKENBUCKET 10/s 50 TTL 1d", "2", ""},
			{"RL.CHECK chat vip:7", "1 49 0 100 50 chat", ""},
			{"RL.CHECK chat 7", "1 4 0 1000 5 chat", ""},
		},
		answer: answerRemaining,
	})
}

func answerDeleted(s *Session, _ []engine.Op, ds []engine.Decision) { s.Int(ds[0].Allowed) }

// runPolicyList reads the arguments [OWNER owner].
func runPolicyList(s *Session, v limiter.View, args [][]byte) {
	all := v.Policies().All()
	if len(args) > 2 {
		if len(args) != 4 || !limits.Is(args[2], "OWNER") {
			s.fail(limits.Bad("option", "must be OWNER owner", args[2]))
			return
		}
		owner, err := policytext.Owner(args[3])
		if err != nil {
			s.fail(err)
			return
		}
		all = slices.DeleteFunc(all, func(p *engine.Policy) bool { return p.Owner != owner })
	}
	s.Array(len(all))
	for _, p := range all {
		s.Bulk(p.Name)
	}
}

func runPolicyGet(s *Session, v limiter.View, args [][]byte) {
	p := v.Policies().Get(args[2])
	if p == nil {
		s.fail(nearPolicies(s, service.NoPolicy(args[2]), args[2]))
		return
	}
	counts := p.Counts()
	s.Map(15 + s.staleFields())
	s.Pair("name", p.Name)
	s.PairInt("version", int64(p.Version))
	s.Bulk("limits")
	s.Strings(limits.Texts(p.Limits))
	s.PairInt("shadow", int64(oneIf(p.Shadow)))
	s.PairInt("disabled", int64(oneIf(p.Disabled)))
	s.PairInt("retry_after_ms", (p.RetryNs+1e6-1)/1e6) // rounded up as in denials
	s.Pair("reserved", limits.ReservedText(p.Reserved))
	s.Bulk("overrides")
	s.Array(len(p.Overrides))
	for i := range p.Overrides {
		writeOverride(s, &p.Overrides[i])
	}
	s.PairInt("admitted", counts.Admitted)
	s.PairInt("denied", counts.Denied)
	s.PairInt("shadowed", counts.Shadowed)
	s.Pair("owner", p.Owner)
	s.Pair("layout", p.Layout)
	s.Pair("report", limits.ReportText(p.ReportNs))
	s.PairInt("record", int64(oneIf(p.Record)))
	s.stale()
}

// writeOverride writes an override: its pattern, its limits, and how long it still holds.
func writeOverride(s *Session, o *engine.Override) {
	s.Array(3)
	s.Bulk(o.Pattern)
	s.Strings(limits.Texts(o.Limits))
	if o.UntilNs == engine.Never {
		s.Int(-1)
		return
	}
	s.Int((max(o.UntilNs-s.srv.Limiter.Now().NowNs, 0) + 999_999) / 1_000_000)
}
