package policytext

import (
	"strconv"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limits"
	"github.com/weir-project/weir/server/arg"
)

// Change is a subcommand of RL.POLICY that changes a policy.
type Change struct {
	Name   string // in capitals
	Arity  int    // arguments including both names; negative: a minimum
	Syntax string // syntax of the arguments
	// Read parses the arguments, including both names, into a zero operation.
	Read func(op *engine.Op, args [][]byte) error
}

// changes are the subcommands that change a policy.
var changes = []Change{
	{"SET", -6, "name LIMIT algorithm argument [argument ...] [LIMIT algorithm argument ...] [SHADOW] [DISABLED] " +
		"[RETRYAFTER duration] [RESERVED part] [LAYOUT layout] [REPORT per] [RECORD] [OWNER owner] [KEEP " +
		"usage|RESET] [IF version]", readSet},
	{"OVERRIDE", -5, "name pattern LIMIT algorithm argument [argument ...] [LIMIT algorithm argument " +
		"...]|UNLIMITED|NONE [TTL duration] [IF version]", readOverride},
	{"DEL", -3, "name [IF version]", readDelete},
	{"ENABLE", 3, "name", readEnable},
	{"DISABLE", 3, "name", readDisable},
	{"SHADOW", 4, "name ON|OFF", readShadow},
}

// Find returns the subcommand with a name, ignoring case, or nil.
func Find(name []byte) *Change {
	for i := range changes {
		if limits.Is(name, changes[i].Name) {
			return &changes[i]
		}
	}
	return nil
}

// change makes op a change of the policy that args[2] names.
func change(op *engine.Op, do engine.PolicyDo, args [][]byte) error {
	if err := checkPolicyName(args[2]); err != nil {
		return err
	}
	op.Code, op.Key, op.Policy = engine.OpPolicy, args[2], &engine.PolicyChange{Do: do}
	return nil
}

// checkPolicyName rejects names that a policy cannot have, including the options of RL.CHECK.
func checkPolicyName(name []byte) error {
	if limits.IsOption(name, limits.CheckOptions) {
		return limits.Bad("policy", "must not be an option of RL.CHECK", name)
	}
	if !engine.IsPolicyName(name) {
		return limits.Bad("policy", "must be 1 to "+strconv.Itoa(engine.MaxPolicyLen)+" letters, digits and -_.:", name)
	}
	return nil
}

func readSet(op *engine.Op, args [][]byte) error {
	err := change(op, engine.PolicySet, args)
	if err != nil {
		return err
	}
	if err := termsArgs(op.Policy, args[3:]); err != nil {
		return err
	}
	return checkLayout(op.Policy.Terms.Layout, string(args[2]))
}

// readDelete parses: name [IF version].
func readDelete(op *engine.Op, args [][]byte) error {
	err := change(op, engine.PolicyDelete, args)
	switch {
	case err != nil || len(args) == 3:
		return err
	case len(args) != 5 || !limits.Is(args[3], "IF"):
		return limits.Bad("option", "must be IF version, at the end", args[3])
	}
	return ifArg(op.Policy, args[4])
}

func readEnable(op *engine.Op, args [][]byte) error {
	return change(op, engine.PolicyEnable, args)
}

func readDisable(op *engine.Op, args [][]byte) error {
	return change(op, engine.PolicyDisable, args)
}

func readShadow(op *engine.Op, args [][]byte) error {
	do := engine.PolicyShadowOn
	switch {
	case limits.Is(args[3], "ON"):
	case limits.Is(args[3], "OFF"):
		do = engine.PolicyShadowOff
	default:
		return limits.Bad("SHADOW", "must be ON or OFF", args[3])
	}
	return change(op, do, args)
}

// readOverride parses: name pattern LIMIT ... | UNLIMITED [TTL d], or NONE; and IF version.
func readOverride(op *engine.Op, args [][]byte) error {
	err := change(op, engine.PolicyOverride, args)
	if err != nil {
		return err
	}
	if err := arg.CheckText("pattern", args[3], engine.MaxKeyLen); err != nil {
		return err
	}
	o := engine.Override{Pattern: string(args[3]), UntilNs: engine.Never}
	rest := args[4:]
	switch {
	case limits.Is(rest[0], "NONE"):
		op.Policy.Do, rest = engine.PolicyUnoverride, rest[1:]
	case limits.Is(rest[0], "UNLIMITED"):
		rest = rest[1:]
	case limits.Is(rest[0], "LIMIT"):
		if o.Limits, rest, err = limitsArgs(rest); err != nil {
			return err
		}
	default:
		return limits.Bad("override", "must be LIMIT and its arguments, UNLIMITED or NONE", rest[0])
	}
	op.Policy.Terms = &engine.Policy{Overrides: []engine.Override{o}}
	if len(rest) > 1 && limits.Is(rest[0], "TTL") && op.Policy.Do == engine.PolicyOverride {
		if op.TTLNs, err = limits.Span("TTL", rest[1]); err != nil {
			return err
		}
		rest = rest[2:]
	}
	switch {
	case len(rest) == 0:
		return nil
	case len(rest) == 2 && limits.Is(rest[0], "IF"):
		return ifArg(op.Policy, rest[1])
	}
	return limits.Bad("option", "must be TTL duration or IF version, at the end", rest[0])
}
