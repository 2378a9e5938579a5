package policyfile

import (
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/server/policytext"
)

// policyReader converts the terms of one policy to arguments of RL.POLICY.
type policyReader struct {
	name  *yaml.Node
	limit []string // the words LIMIT ... of all limits
	terms []string // the words of all other terms
	out   Policy
}

func (p *policyReader) read(terms *yaml.Node) error {
	var overrides *yaml.Node
	flag := func(word string) func(*yaml.Node) error {
		return func(n *yaml.Node) error {
			on, err := boolean(n)
			if on {
				p.terms = append(p.terms, word)
			}
			return err
		}
	}
	valued := func(word string) func(*yaml.Node) error {
		return func(n *yaml.Node) error {
			value, err := scalar(n)
			if p.terms = append(p.terms, word, value); err != nil {
				return err
			}
			_, err = p.op(n, append(append([]string{"SET", "p"}, "LIMIT", "FIXED", "1s", "1"), word, value))
			return err
		}
	}
	err := fields(terms, "policy "+p.name.Value, map[string]func(*yaml.Node) error{
		"limits":      func(n *yaml.Node) (err error) { p.limit, err = p.limits(n); return err },
		"shadow":      flag("SHADOW"),
		"disabled":    flag("DISABLED"),
		"retry_after": valued("RETRYAFTER"),
		"reserved":    valued("RESERVED"),
		"layout":      valued("LAYOUT"),
		"report":      valued("REPORT"),
		"record":      flag("RECORD"),
		"overrides":   func(n *yaml.Node) error { overrides = n; return nil },
	})
	if err != nil {
		return err
	}
	if len(p.limit) == 0 {
		return at(p.name, "policy %s: it needs limits, like '- TOKENBUCKET 10/s 100'", p.name.Value)
	}
	p.out.Name, p.out.Line = p.name.Value, p.name.Line
	p.out.Set, err = p.op(p.name, append(append([]string{"SET", p.name.Value}, p.limit...), p.terms...))
	if err != nil || overrides == nil {
		return err
	}
	return p.overrides(overrides)
}

// op parses the arguments of RL.POLICY. Its errors name the line of n.
func (p *policyReader) op(n *yaml.Node, words []string) (engine.Op, error) {
	op, err := policytext.Parse(words)
	if err != nil {
		return op, at(n, "policy %s: %s", p.name.Value, strings.TrimPrefix(err.Error(), "ERR "))
	}
	return op, nil
}

// limits reads a list of limits. It parses each limit separately, so that an error names its line.
func (p *policyReader) limits(list *yaml.Node) (words []string, err error) {
	if list.Kind != yaml.SequenceNode {
		return nil, at(list, "policy %s: limits is a list, like '- TOKENBUCKET 10/s 100'", p.name.Value)
	}
	for _, n := range list.Content {
		text, err := scalar(n)
		if err != nil {
			return nil, err
		}
		limit := append([]string{"LIMIT"}, strings.Fields(text)...)
		op, err := p.op(n, append([]string{"SET", "p"}, limit...))
		if err != nil {
			return nil, err
		}
		if !isOneLimit(&op) {
			return nil, at(n, "policy %s: a line of limits is one limit, like 'TOKENBUCKET 10/s 100'; what follows it "+
				"is a field of its own, not part of %q", p.name.Value, text)
		}
		words = append(words, limit...)
	}
	return words, nil
}

// isOneLimit reports whether an operation sets a single limit and nothing else.
func isOneLimit(op *engine.Op) bool {
	bare := engine.PolicyChange{Do: engine.PolicySet, Terms: &engine.Policy{Limits: op.Policy.Terms.Limits}}
	return len(op.Policy.Terms.Limits) == 1 && reflect.DeepEqual(op.Policy, &bare)
}

func (p *policyReader) overrides(list *yaml.Node) error {
	if list.Kind != yaml.SequenceNode {
		return at(list, "policy %s: overrides is a list, like '- key: vip:*'", p.name.Value)
	}
	globs := 0
	for _, n := range list.Content {
		if err := p.override(n); err != nil {
			return err
		}
		if p.out.Overrides[len(p.out.Overrides)-1].Policy.Terms.Overrides[0].Glob() {
			globs++
		}
		if keys := len(p.out.Overrides) - globs; globs > engine.MaxGlobs || keys > engine.MaxOverrides {
			return at(n, "policy %s: at most %d overrides of keys and %d of patterns", p.name.Value,
				engine.MaxOverrides, engine.MaxGlobs)
		}
	}
	return nil
}

func (p *policyReader) override(n *yaml.Node) error {
	var limits, ttl []string
	key, unlimited := "", false
	err := fields(n, "an override", map[string]func(*yaml.Node) error{
		"key":       func(n *yaml.Node) (err error) { key, err = scalar(n); return err },
		"limits":    func(n *yaml.Node) (err error) { limits, err = p.limits(n); return err },
		"unlimited": func(n *yaml.Node) (err error) { unlimited, err = boolean(n); return err },
		"ttl":       func(n *yaml.Node) error { text, err := scalar(n); ttl = []string{"TTL", text}; return err },
	})
	switch {
	case err != nil:
		return err
	case key == "":
		return at(n, "policy %s: an override needs a key", p.name.Value)
	case unlimited == (len(limits) > 0):
		return at(n, "policy %s: an override has either limits or 'unlimited: true'", p.name.Value)
	case unlimited:
		limits = []string{"UNLIMITED"}
	}
	if p.out.overrides(key) {
		return at(n, "policy %s has an override for %q twice", p.name.Value, key)
	}
	op, err := p.op(n, append(append([]string{"OVERRIDE", p.name.Value, key}, limits...), ttl...))
	if err != nil {
		return err
	}
	p.out.Overrides = append(p.out.Overrides, op)
	return nil
}
