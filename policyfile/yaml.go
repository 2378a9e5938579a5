package policyfile

import (
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/weir-project/weir/internal/nearest"
)

// fields passes each value of a mapping to the reader of its field. A field without a reader is an error, so that a
// misspelled field is not ignored.
func fields(n *yaml.Node, what string, readers map[string]func(*yaml.Node) error) error {
	return each(n, what, func(key, value *yaml.Node) error {
		read := readers[key.Value]
		if read == nil {
			return unknownField(key, what, slices.Sorted(maps.Keys(readers)))
		}
		return read(value)
	})
}

// unknownField returns an error that suggests the fields with similar names, or else lists all fields.
func unknownField(key *yaml.Node, what string, known []string) error {
	if near := nearest.Names(key.Value, known); len(near) > 0 {
		return at(key, "%s has no field %q, did you mean %s?", what, key.Value, strings.Join(near, " or "))
	}
	return at(key, "%s has no field %q, only %s", what, key.Value, strings.Join(known, ", "))
}

// each calls visit for each field of a mapping, in the order of the file. It rejects duplicates. what is the name of
// the mapping in errors.
func each(n *yaml.Node, what string, visit func(key, value *yaml.Node) error) error {
	if n.Kind == yaml.AliasNode {
		return at(n, "%s: aliases are not followed", what)
	}
	if n.Tag == "!!null" {
		return at(n, "%s: it has no value; write its fields below it, indented", what)
	}
	if n.Kind != yaml.MappingNode {
		return at(n, "%s: lines must be like 'name: value'", what)
	}
	seen := map[string]bool{}
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if seen[key.Value] {
			return at(key, "%s has %q twice", what, key.Value)
		}
		seen[key.Value] = true
		if err := visit(key, value); err != nil {
			return err
		}
	}
	return nil
}

func scalar(n *yaml.Node) (string, error) {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		return "", at(n, "must be a single value")
	}
	return n.Value, nil
}

// texts reads a list of texts.
func texts(n *yaml.Node, what string, most int) (all []string, err error) {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 || len(n.Content) > most {
		return nil, at(n, "%s is a list of 1 to %d", what, most)
	}
	for _, one := range n.Content {
		text, err := scalar(one)
		if err != nil {
			return nil, err
		}
		all = append(all, text)
	}
	return all, nil
}

func boolean(n *yaml.Node) (on bool, err error) {
	if n.Kind != yaml.ScalarNode || n.Decode(&on) != nil {
		return false, at(n, "must be true or false, not %q", n.Value)
	}
	return on, nil
}
