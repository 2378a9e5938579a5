package rules

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/weir-project/weir/internal/nearest"
	"github.com/weir-project/weir/internal/rlspb"
)

// Parse reads files and checks them as one configuration. merge allows several files for one domain.
func Parse(files []File, merge bool) (*Config, error) {
	sources, errs := make([]Source, 0, len(files)), errorList{}
	for _, f := range files {
		source, err := read(f)
		errs.add(err)
		sources = append(sources, source)
	}
	if err := errs.join(); err != nil {
		return nil, err
	}
	return Build(sources, merge)
}

// errorList collects the first errors of a configuration.
type errorList []error

func (l *errorList) add(err error) {
	if err != nil && len(*l) < maxErrors {
		*l = append(*l, err)
	}
}

func (l errorList) join() error { return errors.Join(l...) }

// reader reads one file.
type reader struct {
	file string
	left int // mappings that may still be read. Aliases can name one mapping many times
}

func read(f File) (s Source, err error) {
	r := reader{f.Name, 2 * MaxDescriptors}
	if len(f.Data) > MaxFileBytes {
		return s, fmt.Errorf("%s: a file must have at most %d bytes, not %d", f.Name, MaxFileBytes, len(f.Data))
	}
	var doc, more yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(f.Data))
	if err := d.Decode(&doc); err != nil && !errors.Is(err, io.EOF) {
		return s, fmt.Errorf("%s: %w", f.Name, err)
	}
	if err := d.Decode(&more); !errors.Is(err, io.EOF) && doc.Kind != 0 {
		return s, fmt.Errorf("%s: a file must have one YAML document", f.Name)
	}
	if doc.Kind == 0 {
		return s, fmt.Errorf("%s: the file must have a domain", f.Name)
	}
	top, err := r.mapping(doc.Content[0], "the file", "domain", "descriptors")
	if err != nil {
		return s, err
	}
	s = Source{Name: f.Name}
	if s.Domain, err = r.text(top["domain"], "domain"); err != nil {
		return s, err
	}
	s.Descriptors, err = r.descriptors(top["descriptors"], s.Domain, 1)
	return s, err
}

func (r *reader) fail(n *yaml.Node, path, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s: %s", r.file, n.Line, cmp.Or(path, "the file"), fmt.Sprintf(format, args...))
}

// mapping returns the values of a mapping, all of whose keys must be among words. A nil node is an empty mapping.
func (r *reader) mapping(n *yaml.Node, path string, words ...string) (map[string]*yaml.Node, error) {
	all := map[string]*yaml.Node{}
	if err := r.addTo(all, n, path, 0); err != nil {
		return nil, err
	}
	for _, word := range slices.Sorted(maps.Keys(all)) {
		if !slices.Contains(words, word) {
			hint := ""
			if near := nearest.Names(word, words); len(near) > 0 {
				hint = " (did you mean " + near[0] + "?)"
			}
			return nil, r.fail(all[word], path, "unknown word %q here%s: it may have %s", word, hint,
				strings.Join(words, ", "))
		}
	}
	return all, nil
}

// addTo adds the pairs of a mapping that all has not yet. Its own pairs precede those of its merge keys (<<).
func (r *reader) addTo(all map[string]*yaml.Node, n *yaml.Node, path string, depth int) error {
	n = resolve(n)
	switch r.left--; {
	case isNull(n):
		return nil
	case r.left < 0 || depth > MaxDepth:
		return r.fail(n, path, "too many mappings in a file: at most %d descriptors, %d inside each other",
			MaxDescriptors, MaxDepth)
	case n.Kind != yaml.MappingNode:
		return r.fail(n, path, "must have words with values, like key: user")
	}
	own := map[string]bool{}
	var merged []*yaml.Node
	for i := 0; i < len(n.Content); i += 2 {
		key, value := resolve(n.Content[i]), n.Content[i+1]
		switch {
		case key.ShortTag() == "!!merge":
			merged = append(merged, value)
		case key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str":
			return r.fail(key, path, "words must be text, not %q", key.Value)
		case own[key.Value]:
			return r.fail(key, path, "%s is given twice", key.Value)
		default:
			own[key.Value] = true
			if all[key.Value] == nil {
				all[key.Value] = value
			}
		}
	}
	for _, m := range merged {
		list := []*yaml.Node{m}
		if m = resolve(m); m.Kind == yaml.SequenceNode {
			list = m.Content
		}
		for _, one := range list {
			if err := r.addTo(all, one, path, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

func resolve(n *yaml.Node) *yaml.Node {
	for n != nil && n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool { return n == nil || n.ShortTag() == "!!null" }

// list returns the elements of a list, and none if it is absent.
func (r *reader) list(n *yaml.Node, path, word string) ([]*yaml.Node, error) {
	switch n = resolve(n); {
	case isNull(n):
		return nil, nil
	case n.Kind != yaml.SequenceNode:
		return nil, r.fail(n, path, "%s must be a list", word)
	}
	return n.Content, nil
}

// text returns a text. A whole number and a truth value are text as they are written.
func (r *reader) text(n *yaml.Node, path string) (string, error) {
	n = resolve(n)
	if isNull(n) {
		return "", nil
	}
	switch tag := n.ShortTag(); {
	case n.Kind != yaml.ScalarNode:
		return "", r.fail(n, path, "must be text")
	case tag == "!!str", tag == "!!int", tag == "!!bool":
		return n.Value, nil
	}
	return "", r.fail(n, path, "must be text: write %s in quotes", n.Value)
}

func (r *reader) descriptors(n *yaml.Node, parent string, depth int) (all []Descriptor, err error) {
	list, err := r.list(n, parent, "descriptors")
	if err != nil {
		return nil, err
	}
	if depth > MaxDepth && len(list) > 0 {
		return nil, r.fail(n, parent, "descriptors must be at most %d inside each other", MaxDepth)
	}
	for i, one := range list {
		d, err := r.descriptor(one, parent, i, depth)
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

func (r *reader) descriptor(n *yaml.Node, parent string, i, depth int) (d Descriptor, err error) {
	path := fmt.Sprintf("%s.descriptors[%d]", parent, i)
	all, err := r.mapping(n, path, "key", "value", "rate_limit", "descriptors", "shadow_mode", "quota_mode",
		"detailed_metric", "value_to_metric", "share_threshold")
	if err != nil {
		return d, err
	}
	d.line = n.Line
	if d.Key, err = r.text(all["key"], path+".key"); err != nil {
		return d, err
	}
	if d.Value, err = r.text(all["value"], path+".value"); err != nil {
		return d, err
	}
	if d.Key != "" {
		path = parent + "." + d.composite()
	}
	if len(path) > MaxPathBytes {
		return d, r.fail(n, parent, tooLong, MaxPathBytes)
	}
	for word, to := range map[string]*bool{"shadow_mode": &d.ShadowMode, "quota_mode": &d.QuotaMode,
		"detailed_metric": &d.DetailedMetric, "value_to_metric": &d.ValueToMetric,
		"share_threshold": &d.ShareThreshold} {
		if *to, err = r.truth(all[word], path, word); err != nil {
			return d, err
		}
	}
	if d.Limit, err = r.limit(all["rate_limit"], path); err != nil {
		return d, err
	}
	d.Descriptors, err = r.descriptors(all["descriptors"], path, depth+1)
	return d, err
}

// composite is the name of the descriptor among its siblings: the key, and the value if it has one.
func (d *Descriptor) composite() string {
	if d.Value == "" {
		return d.Key
	}
	return d.Key + "_" + d.Value
}

func (r *reader) truth(n *yaml.Node, path, word string) (truth bool, err error) {
	n = resolve(n)
	if !isNull(n) && (n.Kind != yaml.ScalarNode || n.Decode(&truth) != nil) {
		return false, r.fail(n, path, "%s must be true or false, not %q", word, n.Value)
	}
	return truth, nil
}

func (r *reader) limit(n *yaml.Node, path string) (*Limit, error) {
	if isNull(resolve(n)) {
		return nil, nil
	}
	all, err := r.mapping(n, path+": rate_limit", "unit", "requests_per_unit", "unlimited", "name", "replaces")
	if err != nil {
		return nil, err
	}
	l := new(Limit)
	if l.Unlimited, err = r.truth(all["unlimited"], path, "unlimited"); err != nil {
		return nil, err
	}
	if l.Name, err = r.text(all["name"], path+": name"); err != nil {
		return nil, err
	}
	if l.RequestsPerUnit, err = r.number(all["requests_per_unit"], path); err != nil {
		return nil, err
	}
	unit, err := r.text(all["unit"], path+": unit")
	if err != nil {
		return nil, err
	}
	if l.Unit = rlspb.Unit(rlspb.Unit_value[strings.ToUpper(unit)]); unit != "" && l.Unit == rlspb.Unit_NONE {
		return nil, r.fail(n, path, "unit must be %s, not %q", unitNames, unit)
	}
	replaces, err := r.list(all["replaces"], path, "replaces")
	if err != nil {
		return nil, err
	}
	for _, one := range replaces {
		words, err := r.mapping(one, path+": replaces", "name")
		if err != nil {
			return nil, err
		}
		name, err := r.text(words["name"], path+": replaces")
		if err != nil {
			return nil, err
		}
		l.Replaces = append(l.Replaces, name)
	}
	return l, nil
}

func (r *reader) number(n *yaml.Node, path string) (uint32, error) {
	n = resolve(n)
	if isNull(n) {
		return 0, nil
	}
	i, err := strconv.ParseUint(n.Value, 0, 32)
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" || err != nil {
		return 0, r.fail(n, path, "requests_per_unit must be a whole number from 0 to 4294967295, not %q", n.Value)
	}
	return uint32(i), nil
}
