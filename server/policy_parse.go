package server

import "github.com/weir-project/weir/engine"

// ParsePolicy reads a change of a policy as RL.POLICY takes it, from the subcommand
// on, for those who write policies elsewhere. Its errors are those that a client would
// read.
func ParsePolicy(words []string) (engine.Op, error) {
	args := [][]byte{[]byte("RL.POLICY")}
	for _, w := range words {
		args = append(args, []byte(w))
	}
	for _, cmd := range policyCommands() {
		if len(words) == 0 || cmd.name != "RL.POLICY" {
			continue
		}
		sub := cmd.sub(args[1])
		if sub == nil || sub.plan == nil {
			return engine.Op{}, unknownSubcommand(cmd, args[1])
		}
		sub.full = "rl.policy|" + lower(args[1])
		if !sub.fits(len(args)) {
			return engine.Op{}, wrongArity(sub)
		}
		s := &session{batch: new(batch)}
		if err := sub.plan(s, args); err != nil {
			return engine.Op{}, err
		}
		return s.batch.ops[0], nil
	}
	return engine.Op{}, errSyntax
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
