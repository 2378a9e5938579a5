package policytext

import (
	"strings"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limits"
	"github.com/weir-project/weir/server/arg"
)

// Parse parses a change of a policy in the syntax of RL.POLICY, from the subcommand on. Errors have the texts that a
// client reads.
func Parse(words []string) (op engine.Op, err error) {
	if len(words) == 0 {
		return op, arg.ErrSyntax
	}
	args := [][]byte{[]byte("RL.POLICY")}
	for _, word := range words {
		args = append(args, []byte(word))
	}
	c := Find(args[1])
	if c == nil {
		return op, arg.UnknownSubcommand("RL.POLICY", args[1])
	}
	if !arg.Fits(c.Arity, len(args)) {
		return op, arg.WrongCount("rl.policy|"+strings.ToLower(c.Name), "RL.POLICY "+c.Name+" "+c.Syntax)
	}
	if err := c.Read(&op, args); err != nil {
		return engine.Op{}, err
	}
	return op, nil
}

// Words formats the terms of a policy in the syntax of RL.POLICY SET, after the name. It omits overrides.
func Words(p *engine.Policy) (limitTexts []string, terms []string) {
	limitTexts = limits.Texts(p.Limits)
	if p.Shadow {
		terms = append(terms, "SHADOW")
	}
	if p.Disabled {
		terms = append(terms, "DISABLED")
	}
	if p.RetryNs > 0 {
		terms = append(terms, "RETRYAFTER", engine.FormatDuration(p.RetryNs))
	}
	if p.Reserved > 0 {
		terms = append(terms, "RESERVED", limits.ReservedText(p.Reserved))
	}
	if p.Layout != "" {
		terms = append(terms, "LAYOUT", p.Layout)
	}
	if p.ReportNs > 0 {
		terms = append(terms, "REPORT", engine.FormatDuration(p.ReportNs))
	}
	if p.Record {
		terms = append(terms, "RECORD")
	}
	return limitTexts, terms
}
