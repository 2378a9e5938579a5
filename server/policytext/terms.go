package policytext

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limits"
	"github.com/weir-project/weir/server/timezone"
)

// termsArgs parses the terms of a policy into a change. The change keeps no reference to args.
func termsArgs(change *engine.PolicyChange, args [][]byte) (err error) {
	p := new(engine.Policy)
	change.Terms = p
	if p.Limits, args, err = limitsArgs(args); err != nil {
		return err
	}
	seen := map[string]bool{}
	for len(args) > 0 {
		word := strings.ToUpper(string(args[0]))
		if seen[word] {
			return limits.Error(word + " is given twice")
		}
		seen[word] = true
		used := 1
		switch word {
		case "SHADOW":
			p.Shadow = true
		case "DISABLED":
			p.Disabled = true
		case "RECORD":
			p.Record = true
		case "RESET":
			change.Reset = true
		case "KEEP": // KEEP usage, the default
			if len(args) > 1 && limits.Is(args[1], "USAGE") {
				used++
			}
		case "RETRYAFTER", "RESERVED", "LAYOUT", "REPORT", "OWNER", "IF":
			if len(args) < 2 {
				return limits.Error(word + " needs a value, like " + word + " " + termExamples[word])
			}
			used++
			err = valuedTerm(change, word, args[1])
		default:
			err = limits.Bad("option",
				"must be LIMIT, SHADOW, DISABLED, RETRYAFTER duration, RESERVED part, LAYOUT layout, "+
					"REPORT duration, RECORD, KEEP usage, RESET, OWNER owner or IF version", args[0])
		}
		if err != nil {
			return err
		}
		args = args[used:]
	}
	if seen["KEEP"] && seen["RESET"] {
		return limits.Error("KEEP and RESET exclude each other")
	}
	return nil
}

// termExamples contains an example value of each term that needs one.
var termExamples = map[string]string{
	"RETRYAFTER": "30s", "RESERVED": "20%", "LAYOUT": "rate-limit:{key}:{policy}", "REPORT": "1m",
	"OWNER": "team-a", "IF": "3",
}

// valuedTerm parses the value of a term that needs one.
func valuedTerm(change *engine.PolicyChange, word string, value []byte) (err error) {
	switch word {
	case "RESERVED":
		change.Terms.Reserved, err = limits.Reserved(value)
	case "LAYOUT":
		if change.Terms.Layout = string(value); len(value) == 0 {
			err = limits.Bad(word, "must be like "+termExamples[word], value)
		}
	case "REPORT":
		change.Terms.ReportNs, err = new(limits.Reader).Report(value)
	case "RETRYAFTER":
		change.Terms.RetryNs, err = limits.Span(word, value)
	case "OWNER":
		change.Own = true
		change.Terms.Owner, err = Owner(value)
	default:
		err = ifArg(change, value)
	}
	return err
}

// checkLayout rejects a layout that the policy of this name cannot have.
func checkLayout(layout, policy string) error {
	_, accepted, bad := strings.Cut(fmt.Sprint(engine.CheckLayout(layout, policy)), "LAYOUT ")
	if layout == "" || !bad {
		return nil
	}
	return limits.Bad("LAYOUT", accepted, []byte(layout))
}

// Owner parses an owner. NONE means no owner.
func Owner(b []byte) (string, error) {
	switch {
	case limits.Is(b, "NONE"):
		return "", nil
	case !engine.IsPolicyName(b):
		accepted := "must be 1 to " + strconv.Itoa(engine.MaxPolicyLen) + " letters, digits and -_.:, or NONE"
		return "", limits.Bad("OWNER", accepted, b)
	}
	return string(b), nil
}

// ifArg parses the version on which a change is conditional.
func ifArg(change *engine.PolicyChange, b []byte) error {
	version, err := limits.Units("IF", b, 0, engine.Never)
	change.If, change.Version = true, uint64(version)
	return err
}

// termWords are the words that end the arguments of a LIMIT.
var termWords = []string{
	"LIMIT", "SHADOW", "DISABLED", "RETRYAFTER", "RESERVED", "LAYOUT", "REPORT", "RECORD", "KEEP", "RESET",
	"OWNER", "IF", "UNLIMITED", "TTL"}

func isTerm(b []byte) bool {
	return slices.ContainsFunc(termWords, func(word string) bool { return limits.Is(b, word) })
}

// limitsArgs parses LIMIT and its arguments, at least once.
func limitsArgs(args [][]byte) (all []engine.PolicyLimit, rest [][]byte, err error) {
	r := limits.Reader{Zone: timezone.Tables.Get}
	if len(args) == 0 || !limits.Is(args[0], "LIMIT") {
		got := []byte(nil)
		if len(args) > 0 {
			got = args[0]
		}
		return nil, nil, limits.Bad("policy", "must begin with LIMIT: "+limits.Algorithms, got)
	}
	for len(args) > 0 && limits.Is(args[0], "LIMIT") {
		end := 1
		for end < len(args) && !isTerm(args[end]) {
			end++
		}
		l, err := r.Limit(args[1:end])
		if err != nil {
			return nil, nil, err
		}
		if len(all) == engine.MaxPolicyLimits {
			return nil, nil, limits.Error("a policy has at most " + strconv.Itoa(engine.MaxPolicyLimits) + " limits")
		}
		all, args = append(all, l), args[end:]
	}
	return all, args, nil
}
