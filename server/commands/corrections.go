package commands

import (
	"bytes"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/engine/network"
	"github.com/weir-project/weir/limits"
	"github.com/weir-project/weir/server/arg"
	"github.com/weir-project/weir/server/resp"
)

func correctionCommands() []*command {
	commands := append(append(returnCommands(), blockCommands()...), deleteCommand("DEL"), deleteCommand("UNLINK"))
	for _, cmd := range commands {
		cmd.group, cmd.flags = groupCorrect, "write fast"
		if cmd.keys.first == 0 {
			cmd.keys = oneKey
		}
	}
	return commands
}

// returnCommands are the commands that give back slots, units or strikes.
func returnCommands() []*command {
	return []*command{
		{
			name: "RL.RELEASE", arity: -3, syntax: "key holder [ID token]",
			summary: "Release a slot",
			params:  []param{paramKey, {"holder", "the holder id that `RL.ACQUIRE` was given or answered"}, paramID},
			reply:   "1, or 0 when the holder holds nothing any more.",
			shown:   []example{{"RL.RELEASE job:export a", "0", ""}},
			plan:    planRelease, answer: answerAllowed,
		},
		{
			name: "RL.RENEW", arity: -4, syntax: "key holder ttl [ID token]",
			summary: "Extend the lease of a slot",
			details: "The slot is held for `ttl` from now, whatever time was left.",
			params: []param{paramKey, {"holder", "the holder id that `RL.ACQUIRE` was given or answered"},
				{"ttl", "a duration; 0: until it is released"}, paramID},
			reply: "1, or 0 when the holder has lost the slot: then stop, or acquire again.",
			shown: []example{{"RL.ACQUIRE job:export 2 30s HOLDER a", "1 1 0 30000 2 a", ""},
				{"RL.RENEW job:export a 1m", "1", ""}},
			plan: planRenew, answer: answerAllowed,
		},
		{
			name: "RL.REFUND", arity: -3, syntax: "key n [ID token]",
			summary: "Give back units that were taken and not used",
			details: "A limiter never gains more than was taken from it. Send an `ID`: a refund that is repeated " +
				"after a lost connection would " +
				"otherwise count twice.",
			params: []param{paramKey, {"n", "units to give back"}, paramID},
			reply:  "The units left, or -1 when the limiter is idle: there was nothing to give back.",
			shown: []example{{"RL.TOKENBUCKET user:42 1/m 10 COST 8", "1 2 0 480000 10", ""},
				{"RL.REFUND user:42 5 ID req-77", "7", ""}},
			plan: planRefund, answer: answerRemaining,
		},
		{
			name: "RL.RESET", arity: -2, syntax: "key [key ...] [ID token]",
			summary: "Forget limiters, as if they had never been used",
			details: "An administrative block (`RL.BLOCK`) stays. With three arguments or more, `ID token` at the " +
				"end is the idempotency key, not two keys.",
			params: []param{{"key", "limiters to forget"}, paramID},
			reply:  "How many of them were not idle.",
			cost:   "O(n) in the keys given",
			shown: []example{{"RL.FIXED trial:42 FOREVER 3", "1 2 0 -1 3", ""},
				{"RL.RESET trial:42 trial:43", "1", ""}},
			keys: keySpec{1, -1, 1}, plan: planReset, answer: answerReset,
		},
		{
			name: "RL.FORGIVE", arity: -3, syntax: "policy key [policy key ...] [ID token]", keys: keySpec{2, -1, 2},
			summary: "Forget the strikes of a policy for a key, and end their penalties",
			details: "Send it after an attempt under a policy with `STRIKE ... ATTEMPTS` succeeded; for `RL.STRIKE` " +
				"send `RL.RESET`. It also forgives the attempts that are still running. " +
				"Other limits of the policy stay as they are. To take back only one attempt, send `RL.REFUND " +
				"policy|<policy>|<number of the limit, from 0>|<key> 1`, which ends no penalty.",
			params: []param{{"policy", "a policy made with `RL.POLICY SET`"}, paramKey, paramID},
			reply:  "How many limiters had strikes.",
			cost:   "O(n) in the limits of the policies",
			shown: []example{{"RL.POLICY SET lockout LIMIT STRIKE 15m 2 DELAY 2s 3 15m ATTEMPTS", "1", ""},
				{"RL.CHECK lockout 42", "1 2 0 900000 3 lockout", "an attempt begins"},
				{"RL.FORGIVE lockout 42", "1", "and succeeds"}},
			plan: planForgive, answer: answerAllowed,
		},
	}
}

func blockCommands() []*command {
	return []*command{
		{
			name: "RL.BLOCK", arity: -3, syntax: "key duration|FOREVER [EVERYWHERE] [REASON text] [ID token] [GT]",
			summary: "Deny every decision on a key",
			details: "A block denies the decisions on exactly its key, under every policy. `EVERYWHERE` also denies " +
				"decisions on every key that ends in `|` and this key. For a key of `ip:` and an address it does " +
				"the same for the address alone. So one command blocks an address: `RL.BLOCK ip:192.0.2.66 1h " +
				"EVERYWHERE`. It reaches `ip:192.0.2.66` and `login|ip:192.0.2.66`, which the middleware of the Go " +
				"client asks about, with a policy and without, and `192.0.2.66`, which proxies and Envoy ask " +
				"about. An IPv6 client is its /64 to all of them: `ip:2001:db8:0:7::/64`. An address that is " +
				"written otherwise is an error, because the block would reach nobody. `ip:` and a network, like " +
				"`ip:192.0.2.0/24`, blocks all addresses in it the same way: IPv4 from /8 on, IPv6 from /16 on." +
				"\n\nA key may have two blocks: one of the key alone and one `EVERYWHERE`. The later end counts. " +
				"A block replaces an earlier block of its kind. At most 100000 blocks `EVERYWHERE` are in force. Only " +
				"a user with permission for all keys may set, replace or lift one. [Several groups](clustering.md" +
				"#policies-and-blocks-of-several-groups) all have it when the answer is OK. A block of one key asks " +
				"the key's group alone.",
			params: []param{paramKey, {"duration", "how long, from now; `FOREVER`: until `RL.UNBLOCK`"},
				{"EVERYWHERE", "also on every key that ends in `|` and this one; of `ip:` and an address also on " +
					"the address alone"},
				{"REASON text", "shown by RL.INSPECT and RL.EXPLAIN; 1 to 128 bytes"}, paramID,
				{"GT", "only lengthen: a block of the key that ends later stays; not with `EVERYWHERE`"}},
			reply: "OK.",
			shown: []example{{"RL.BLOCK user:13 1h REASON abuse", "OK", ""},
				{"RL.TOKENBUCKET user:13 10/s 100", "0 0 3600000 3600000 100", ""},
				{"RL.BLOCK ip:192.0.2.66 1h EVERYWHERE", "OK", ""}, {"RL.TOKENBUCKET login|ip:192.0.2.66 10/s 100",
					"0 0 3600000 3600000 100", "another key, blocked as well"}},
			plan: planBlock, answer: answerOK,
		},
		{
			name: "RL.UNBLOCK", arity: -2, syntax: "key [ID token]",
			summary: "Lift the blocks of a key, of this key alone and everywhere",
			details: "In a transaction of a cluster with several groups it lifts the block of the key alone, and is " +
				"an error for a key with a block `EVERYWHERE`.",
			params: []param{paramKey, paramID},
			reply:  "1, or 0 when the key was not blocked.",
			shown:  []example{{"RL.BLOCK user:13 FOREVER", "OK", ""}, {"RL.UNBLOCK user:13", "1", ""}},
			plan:   planUnblock, answer: answerAllowed,
		},
	}
}

func deleteCommand(name string) *command {
	return &command{
		name: name, arity: -2, syntax: "key [key ...]",
		summary: "The same as RL.RESET",
		params:  []param{{"key", "limiters to forget"}},
		reply:   "How many of them were not idle.",
		cost:    "O(n) in the keys given",
		keys:    keySpec{1, -1, 1}, plan: planDelete, answer: answerReset,
	}
}

func answerAllowed(s *Session, _ []engine.Op, ds []engine.Decision)   { s.Int(ds[0].Allowed) }
func answerRemaining(s *Session, _ []engine.Op, ds []engine.Decision) { s.Int(ds[0].Remaining) }
func answerOK(s *Session, _ []engine.Op, _ []engine.Decision)         { s.OK() }

// The plan functions turn the arguments of the commands of correctionCommands into operations.

func planRelease(s *Session, args [][]byte) error {
	op, err := s.textOp(engine.OpRelease, args[1], "holder", args[2], engine.MaxHolderLen)
	if err != nil {
		return err
	}
	_, _, err = arg.Options(op, args[3:], limits.ID)
	return err
}

func planRenew(s *Session, args [][]byte) error {
	op, err := s.textOp(engine.OpRenew, args[1], "holder", args[2], engine.MaxHolderLen)
	if err != nil {
		return err
	}
	if op.TTLNs, err = limits.Duration("ttl", args[3]); err != nil {
		return err
	}
	_, _, err = arg.Options(op, args[4:], limits.ID)
	return err
}

func planRefund(s *Session, args [][]byte) error {
	op, err := s.op(engine.OpRefund, args[1])
	if err != nil {
		return err
	}
	if op.Cost, err = limits.Units("n", args[2], 1, engine.MaxUnits); err != nil {
		return err
	}
	_, _, err = arg.Options(op, args[3:], limits.ID)
	return err
}

func planBlock(s *Session, args [][]byte) error {
	if err := checkBlockable(s.srv, args[1]); err != nil {
		return err
	}
	op, err := s.op(engine.OpBlock, args[1])
	if err != nil {
		return err
	}
	if limits.Is(args[2], "FOREVER") {
		op.TTLNs = engine.Never
	} else if op.TTLNs, err = limits.Span("duration", args[2]); err != nil {
		return limits.OrWords(err, "FOREVER", "duration", args[2])
	}
	op.Partial, op.High = ofSomeKeys(s), true
	seen, _, err := arg.Options(op, args[3:], limits.Reason|limits.ID|limits.Everywhere|limits.Longer)
	switch {
	case err != nil || seen&limits.Everywhere == 0:
		return err
	case op.Keep:
		return limits.Error("GT goes with a block of the key alone, not with EVERYWHERE")
	}
	op.Code = engine.OpBlockEverywhere
	return checkAddressKey(op.Key)
}

// ofSomeKeys reports whether the user may use only some keys. A block EVERYWHERE affects keys beyond them.
func ofSomeKeys(s *Session) bool { return s.limits != nil && !s.limits.AllKeys }

// checkAddressKey refuses an address that is not in the form in which decisions ask about it. A block of such an
// address would match no decision, and would be answered OK.
func checkAddressKey(key []byte) error {
	text := bytes.TrimPrefix(key, []byte(arg.AddressPrefix))
	if _, is := network.Parse(text); !is {
		return nil
	}
	want, err := arg.Network("key of a block EVERYWHERE", text)
	if err == nil && !bytes.Equal(want, key) {
		err = limits.Bad("key", "of a block EVERYWHERE must be "+string(want)+" to reach this address", key)
	}
	return err
}

func planUnblock(s *Session, args [][]byte) error {
	op, err := s.op(engine.OpUnblock, args[1])
	if err != nil {
		return err
	}
	op.Partial = ofSomeKeys(s)
	_, _, err = arg.Options(op, args[2:], limits.ID)
	return err
}

// planForgive reads policies and their keys, then an optional ID with a token.
func planForgive(s *Session, args [][]byte) error {
	op, err := s.textOp(engine.OpForgive, args[2], "policy", args[1], engine.MaxPolicyLen)
	if err != nil {
		return err
	}
	rest, err := morePairs(s, op, args[3:])
	if err != nil {
		return err
	}
	_, _, err = arg.Options(op, rest, limits.ID)
	return err
}

// planReset reads any number of keys, then an optional ID with a token.
func planReset(s *Session, args [][]byte) error {
	keys := args[1:]
	var id []byte
	if n := len(keys); n >= 3 && limits.Is(keys[n-2], "ID") {
		keys, id = keys[:n-2], keys[n-1]
		if err := arg.CheckText("ID", id, engine.MaxIDLen); err != nil {
			return err
		}
	}
	return resetAll(s, keys, id)
}

// planDelete is Redis' DEL: every argument is a key.
func planDelete(s *Session, args [][]byte) error { return resetAll(s, args[1:], nil) }

func resetAll(s *Session, keys [][]byte, id []byte) error {
	keys = distinctNames(s.srv.Here.Policies(), keys)
	for _, key := range keys {
		if s.isBlacklist(key) {
			return resp.Error("ERR " + s.srv.cfg.BlacklistKey +
				" is the set of blocked addresses, use SREM to take members out of it")
		}
		if err := resetNamed(s, key, id); err != nil {
			return err
		}
	}
	return nil
}
