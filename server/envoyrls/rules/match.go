package rules

import (
	"strings"

	"github.com/weir-project/weir/internal/rlspb"
)

// Match is the limit of a descriptor.
type Match struct {
	*Rule
	// Path is the name of the descriptor in statistics. It is Rule.Path, or contains values of the descriptor if the
	// configuration says so.
	Path string
	// Patterns are nil, or have for each entry the pattern whose requests share one limiter, or "".
	Patterns []string
}

// step is how one entry was found.
type step struct {
	*node
	kind stepKind
}

type stepKind uint8

const (
	byDefault  stepKind = iota // a descriptor without a value
	byValue                    // key and value
	byWildcard                 // key and the begin of the value
)

// find returns the child for an entry, or one without a node. buf is memory for the composite key.
func (n *node) find(e *rlspb.Entry, buf *[]byte) step {
	*buf = append(append(append((*buf)[:0], e.Key...), '_'), e.Value...)
	if child := n.children[string(*buf)]; child != nil {
		return step{child, byValue}
	}
	for _, child := range n.wildcards {
		n := len(child.name) - 1
		if len(*buf) >= n && string((*buf)[:n]) == child.name[:n] {
			return step{child, byWildcard}
		}
	}
	return step{n.children[string(e.Key)], byDefault}
}

// Match returns the limit of a descriptor without a limit of its own, if the configuration has one. The limit is that
// of the last entry: each entry leads one level down, by its key and value, or a wildcard, or its key alone.
func (d *Domain) Match(entries []*rlspb.Entry) (m Match, ok bool) {
	var room [8]step
	var bytes [128]byte
	steps, buf, at := room[:0], bytes[:0], &d.node
	for _, e := range entries {
		s := at.find(e, &buf)
		if s.node == nil {
			return m, false
		}
		steps, at = append(steps, s), s.node
	}
	if at.rule == nil {
		return m, false
	}
	m = Match{Rule: at.rule, Path: at.rule.Path}
	for i, s := range steps {
		if s.kind != byWildcard || !s.shareThreshold {
			continue
		}
		if m.Patterns == nil {
			m.Patterns = make([]string, len(entries))
		}
		m.Patterns[i] = s.pattern(entries[i])
	}
	if at.rule.DetailedMetric || !plain(steps, entries) {
		m.Path = d.path(&m, steps, entries)
	}
	return m, true
}

// pattern returns the part of a wildcard that stands for the value of an entry.
func (s step) pattern(e *rlspb.Entry) string {
	if s.beginsWith(e) {
		return s.name[len(e.Key)+1:]
	}
	return s.name
}

// beginsWith reports whether the composite key begins with the whole key of an entry.
func (s step) beginsWith(e *rlspb.Entry) bool {
	n := len(e.Key)
	return len(s.name) > n && s.name[:n] == string(e.Key) && s.name[n] == '_'
}

// plain reports whether the path of the rule names the descriptor in statistics.
func plain(steps []step, entries []*rlspb.Entry) bool {
	for i, s := range steps {
		switch e := entries[i]; {
		case s.kind == byValue && len(e.Value) == 0,
			s.kind == byDefault && s.valueToMetric,
			s.kind == byWildcard && (s.valueToMetric && !s.shareThreshold || !s.beginsWith(e)):
			return false
		}
	}
	return true
}

// path returns the name of the descriptor in statistics if the configuration wants values of entries in it.
func (d *Domain) path(m *Match, steps []step, entries []*rlspb.Entry) string {
	var b strings.Builder
	b.WriteString(d.name)
	for i, e := range entries {
		value, always := string(e.Value), m.DetailedMetric && m.Patterns == nil
		switch s := steps[i]; {
		case m.Patterns != nil && m.Patterns[i] != "":
			value = m.Patterns[i]
		case m.DetailedMetric, s.kind == byValue, s.valueToMetric:
		case s.kind == byWildcard:
			value = s.pattern(e)
		default:
			value = ""
		}
		b.WriteByte('.')
		b.Write(e.Key)
		if value != "" || always {
			b.WriteByte('_')
			b.WriteString(value)
		}
	}
	return b.String()
}

// OverridePath returns the name in statistics of a descriptor that has a limit of its own.
func OverridePath(domain []byte, entries []*rlspb.Entry) string {
	var b strings.Builder
	b.Write(domain)
	if len(entries) == 0 {
		b.WriteByte('.')
	}
	for _, e := range entries {
		b.WriteByte('.')
		b.Write(e.Key)
		if len(e.Value) > 0 {
			b.WriteByte('_')
			b.Write(e.Value)
		}
	}
	return b.String()
}
