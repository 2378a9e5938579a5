package server

import (
	"strings"

	"github.com/weir-project/weir/engine"
)

// ParsePolicy reads a change of a policy as RL.POLICY takes it, from the subcommand
// on, for those who write policies elsewhere. Its errors are those that a client would
// read.
func ParsePolicy(words []string) (op engine.Op, err error) {
	if len(words) == 0 {
		return op, errSyntax
	}
	args := [][]byte{[]byte("RL.POLICY")}
	for _, word := range words {
		args = append(args, []byte(word))
	}
	c := findChange(args[1])
	if c == nil {
		return op, unknownSubcommand("RL.POLICY", args[1])
	}
	if !fits(c.Arity, len(args)) {
		return op, wrongCount("rl.policy|"+strings.ToLower(c.Name), "RL.POLICY "+c.Name+" "+c.Syntax)
	}
	if err := c.Read(&op, args); err != nil {
		return engine.Op{}, err
	}
	return op, nil
}

// PolicyWords writes the terms of a policy as RL.POLICY SET takes them, behind the
// name. Overrides are not among them.
func PolicyWords(p *engine.Policy) (limits []string, terms []string) {
	limits = limitTexts(p.Limits)
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
		terms = append(terms, "RESERVED", reservedText(p.Reserved))
	}
	if p.Layout != "" {
		terms = append(terms, "LAYOUT", p.Layout)
	}
	if p.ReportNs > 0 {
		terms = append(terms, "REPORT", engine.FormatDuration(p.ReportNs))
	}
	return limits, terms
}
