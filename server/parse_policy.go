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
	if err := termsArgs(op.Policy, args[3:]); err != nil {
		return err
	}
	return checkLayout(op.Policy.Terms.Layout, string(args[2]))
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
