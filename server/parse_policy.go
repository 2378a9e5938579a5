package server

import (
	"strconv"

	"github.com/weir-project/weir/engine"
)

// change begins a change of the policy that args[2] names.
func (s *session) change(do engine.PolicyDo, args [][]byte) (*engine.Op, error) {
	if err := checkPolicyName(args[2]); err != nil {
		return nil, err
	}
	op := s.batch.next()
	op.Code, op.Key, op.Policy = engine.OpPolicy, args[2], &engine.PolicyChange{Do: do}
	return op, nil
}

// checkPolicyName refuses names that a policy cannot have, those of the options of
// RL.CHECK among them.
func checkPolicyName(name []byte) error {
	if isOption(name, checkOptions) {
		return badArgument("policy", "must not be an option of RL.CHECK", name)
	}
	if !engine.IsPolicyName(name) {
		return badArgument("policy", "must be 1 to "+strconv.Itoa(engine.MaxPolicyLen)+" letters, digits and -_.:", name)
	}
	return nil
}

func planPolicySet(s *session, args [][]byte) error {
	op, err := s.change(engine.PolicySet, args)
	if err != nil {
		return err
	}
	return termsArgs(op.Policy, args[3:])
}

// termsArgs reads the terms of a policy into a change. Nothing of args is kept.
func termsArgs(change *engine.PolicyChange, args [][]byte) (err error) {
	p := new(engine.Policy)
	change.Terms = p
	if p.Limits, args, err = limitsArgs(args); err != nil {
		return err
	}
	seen := map[string]bool{}
	for len(args) > 0 {
		word := upper(args[0])
		if seen[word] {
			return replyError("ERR " + word + " is given twice")
		}
		seen[word] = true
		used := 1
		switch word {
		case "SHADOW":
			p.Shadow = true
		case "DISABLED":
			p.Disabled = true
		case "RESET":
			change.Reset = true
		case "KEEP": // the default, said aloud: KEEP usage
			used += int(oneIf(len(args) > 1 && isWord(args[1], "USAGE")))
		case "RETRYAFTER", "RESERVED", "OWNER", "IF":
			if len(args) < 2 {
				return replyError("ERR " + word + " needs a value, like " + word + " " + termExamples[word])
			}
			used++
			err = valuedTerm(change, word, args[1])
		default:
			err = badArgument("option", "must be LIMIT, SHADOW, DISABLED, RETRYAFTER duration, RESERVED part, KEEP usage, RESET, OWNER owner or IF version", args[0])
		}
		if err != nil {
			return err
		}
		args = args[used:]
	}
	if seen["KEEP"] && seen["RESET"] {
		return replyError("ERR KEEP and RESET exclude each other")
	}
	return nil
}

// termExamples has a value of each term that needs one.
var termExamples = map[string]string{"RETRYAFTER": "30s", "RESERVED": "20%", "OWNER": "team-a", "IF": "3"}

// valuedTerm reads the value of a term that needs one.
func valuedTerm(change *engine.PolicyChange, word string, value []byte) (err error) {
	switch word {
	case "RESERVED":
		change.Terms.Reserved, err = reservedArg(value)
	case "RETRYAFTER":
		change.Terms.RetryNs, err = spanArg(word, value)
	case "OWNER":
		change.Own = true
		change.Terms.Owner, err = ownerArg(value)
	default:
		err = ifArg(change, value)
	}
	return err
}

// ownerArg reads an owner; NONE is nobody.
func ownerArg(b []byte) (string, error) {
	switch {
	case isWord(b, "NONE"):
		return "", nil
	case !engine.IsPolicyName(b):
		return "", badArgument("OWNER", "must be 1 to "+strconv.Itoa(engine.MaxPolicyLen)+" letters, digits and -_.:, or NONE", b)
	}
	return string(b), nil
}

// ifArg reads the version on which a change is conditional.
func ifArg(change *engine.PolicyChange, b []byte) error {
	version, err := unitsArg("IF", b, 0, engine.Never)
	change.If, change.Version = true, uint64(version)
	return err
}

// limitsArgs reads LIMIT and its arguments, at least once.
func limitsArgs(args [][]byte) (limits []engine.PolicyLimit, rest [][]byte, err error) {
	if len(args) == 0 || !isWord(args[0], "LIMIT") {
		got := []byte(nil)
		if len(args) > 0 {
			got = args[0]
		}
		return nil, nil, badArgument("policy", "must begin with LIMIT: "+algorithmWords, got)
	}
	for len(args) > 0 && isWord(args[0], "LIMIT") {
		end := 1
		for end < len(args) && !isTerm(args[end]) {
			end++
		}
		l, err := limitArgs(args[1:end])
		if err != nil {
			return nil, nil, err
		}
		if len(limits) == engine.MaxPolicyLimits {
			return nil, nil, replyError("ERR a policy has at most " + strconv.Itoa(engine.MaxPolicyLimits) + " limits")
		}
		limits, args = append(limits, l), args[end:]
	}
	return limits, args, nil
}

// planPolicyDelete reads: name [IF version].
func planPolicyDelete(s *session, args [][]byte) error {
	op, err := s.change(engine.PolicyDelete, args)
	switch {
	case err != nil || len(args) == 3:
		return err
	case len(args) != 5 || !isWord(args[3], "IF"):
		return badArgument("option", "must be IF version, at the end", args[3])
	}
	return ifArg(op.Policy, args[4])
}

func planPolicyEnable(s *session, args [][]byte) error {
	_, err := s.change(engine.PolicyEnable, args)
	return err
}

func planPolicyDisable(s *session, args [][]byte) error {
	_, err := s.change(engine.PolicyDisable, args)
	return err
}

func planPolicyShadow(s *session, args [][]byte) error {
	do := engine.PolicyShadowOn
	switch {
	case isWord(args[3], "ON"):
	case isWord(args[3], "OFF"):
		do = engine.PolicyShadowOff
	default:
		return badArgument("SHADOW", "must be ON or OFF", args[3])
	}
	_, err := s.change(do, args)
	return err
}

// planPolicyOverride reads: name pattern LIMIT ... | UNLIMITED [TTL d], or NONE; and IF version.
func planPolicyOverride(s *session, args [][]byte) error {
	op, err := s.change(engine.PolicyOverride, args)
	if err != nil {
		return err
	}
	if err := checkText("pattern", args[3], engine.MaxKeyLen); err != nil {
		return err
	}
	o := engine.Override{Pattern: string(args[3]), UntilNs: engine.Never}
	rest := args[4:]
	switch {
	case isWord(rest[0], "NONE"):
		op.Policy.Do, rest = engine.PolicyUnoverride, rest[1:]
	case isWord(rest[0], "UNLIMITED"):
		rest = rest[1:]
	case isWord(rest[0], "LIMIT"):
		if o.Limits, rest, err = limitsArgs(rest); err != nil {
			return err
		}
	default:
		return badArgument("override", "must be LIMIT and its arguments, UNLIMITED or NONE", rest[0])
	}
	op.Policy.Terms = &engine.Policy{Overrides: []engine.Override{o}}
	if len(rest) > 1 && isWord(rest[0], "TTL") && op.Policy.Do == engine.PolicyOverride {
		if op.TTLNs, err = spanArg("TTL", rest[1]); err != nil {
			return err
		}
		rest = rest[2:]
	}
	switch {
	case len(rest) == 0:
		return nil
	case len(rest) == 2 && isWord(rest[0], "IF"):
		return ifArg(op.Policy, rest[1])
	}
	return badArgument("option", "must be TTL duration or IF version, at the end", rest[0])
}
