package engine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A policy may have a layout: the form of the names under which operators see its limiters. With the
// layout "rate-limit:{key}:{policy}", the limiters of the policy login for the key ip:1 have the name
//
//	rate-limit:ip:1:login
//
// All limits of a policy share that name. A layout does not change how limiters are stored, hashed or
// decided: see Policies.OfLayout and Policies.ShownAs.

// MaxLayoutLen bounds a layout in bytes, with the policy's name filled in. These bytes are added to every key
// that KEYS answers.
const MaxLayoutLen = 128

// maxLayoutText bounds the text of a layout, which may be longer than the layout it expands to.
const maxLayoutText = 2 * MaxLayoutLen

const (
	layoutKey    = "{key}"
	layoutPolicy = "{policy}"
)

// layout is the text before and after the key in a name.
type layout struct{ before, behind string }

// parseLayout reads the layout of a policy with this name.
func parseLayout(text, policy string) (layout, error) {
	bad := func(why string) (layout, error) { return layout{}, fmt.Errorf("%w: LAYOUT %s", ErrPolicy, why) }
	if len(text) > maxLayoutText {
		return bad(fmt.Sprintf("must be at most %d bytes", maxLayoutText))
	}
	for _, c := range []byte(text) {
		if c <= ' ' || c >= 0x7f {
			return bad("must be ASCII without blanks")
		}
	}
	before, behind, found := strings.Cut(text, layoutKey)
	if !found || strings.Contains(behind, layoutKey) {
		return bad("must contain " + layoutKey + " exactly once, like rate-limit:{key}:{policy}")
	}
	l := layout{strings.ReplaceAll(before, layoutPolicy, policy), strings.ReplaceAll(behind, layoutPolicy, policy)}
	for _, part := range []string{l.before, l.behind} {
		if _, word, open := strings.Cut(part, "{"); open && strings.Contains(word, "}") {
			return bad("accepts {key} and {policy} only")
		}
	}
	switch n := len(l.before) + len(l.behind); {
	case n == 0:
		return bad("must contain more than " + layoutKey)
	case n > MaxLayoutLen:
		return bad(fmt.Sprintf("must be at most %d bytes beside the key", MaxLayoutLen))
	case strings.HasPrefix(l.before, reservedPrefix):
		return bad("must not begin with " + reservedPrefix)
	}
	return l, nil
}

// CheckLayout returns the error that Validate returns for the layout of a policy of this name, or nil.
func CheckLayout(text, policy string) error {
	_, err := parseLayout(text, policy)
	return err
}

// keyOf returns the key in a name of this layout.
func (l layout) keyOf(name []byte) (key []byte, ok bool) {
	n := len(name) - len(l.before) - len(l.behind)
	if n < 1 || n > MaxKeyLen || Reserved(name) ||
		string(name[:len(l.before)]) != l.before || string(name[len(name)-len(l.behind):]) != l.behind {
		return nil, false
	}
	key = name[len(l.before) : len(name)-len(l.behind)]
	return key, !Reserved(key)
}

// len returns how many bytes of a name a layout fixes.
func (l layout) len() int { return len(l.before) + len(l.behind) }

// meets reports whether two layouts conflict: they can make the same name, and neither is a refinement of the
// other. With long keys, two layouts make the same name unless their prefixes or their suffixes differ. A
// layout refines another if it has the same prefix and suffix and fixes more bytes: rl:auth:fail:{key} refines
// rl:auth:{key}.
func (l layout) meets(other layout) bool {
	shorter, longer := l, other
	if shorter.len() > longer.len() {
		shorter, longer = longer, shorter
	}
	within := len(shorter.before) <= len(longer.before) && len(shorter.behind) <= len(longer.behind)
	return l.overlaps(other) && (!within || shorter.len() == longer.len())
}

// overlaps reports whether two layouts can make the same name.
func (l layout) overlaps(other layout) bool {
	begin, end := min(len(l.before), len(other.before)), min(len(l.behind), len(other.behind))
	return l.before[:begin] == other.before[:begin] &&
		l.behind[len(l.behind)-end:] == other.behind[len(other.behind)-end:]
}

// LayoutTaken returns a policy of another name whose layout conflicts with the given layout, or nil. OpPolicy
// refuses such a layout, so that no name has two meanings.
func (s *Policies) LayoutTaken(name, text string) *Policy {
	l, err := parseLayout(text, name)
	if text == "" || err != nil {
		return nil
	}
	for _, p := range s.Layouts {
		if p.Name != name && p.layout.meets(l) {
			return p
		}
	}
	return nil
}

// OfLayout returns the policy whose layout makes a name, and the key in the name. If several layouts do, it
// returns the policy whose layout fixes the most bytes. A limiter of another kind may have exactly this name,
// so callers look up the name itself first.
func (s *Policies) OfLayout(name []byte) (p *Policy, key []byte) {
	for _, p := range s.Layouts {
		if key, ok := p.layout.keyOf(name); ok {
			return p, key
		}
	}
	return nil, nil
}

// ShownAs appends the name that a policy's layout gives to a limiter. shared reports whether other limits of
// the policy have the same name. ok is false for a limiter without such a name.
func (s *Policies) ShownAs(b, name []byte) (shown []byte, shared, ok bool) {
	if len(s.Layouts) == 0 {
		return b, false, false
	}
	policy, _, key, ok := SplitName(name)
	if !ok {
		return b, false, false
	}
	p := s.Get(policy)
	if p == nil || p.Layout == "" {
		return b, false, false
	}
	at := len(b)
	b = append(append(append(b, p.layout.before...), key...), p.layout.behind...)
	if Reserved(b[at:]) {
		return b[:at], false, false
	}
	if of, _ := s.OfLayout(b[at:]); of != p { // the name means another policy, whose layout fixes more bytes
		return b[:at], false, false
	}
	return b, len(p.prefixes) > 1, true
}

// NamesOf returns the names of all limiters that the policy may have for a key.
func (p *Policy) NamesOf(key []byte) (names [][]byte) {
	for i := range p.prefixes {
		names = append(names, p.NameOf(i, key))
	}
	return names
}

// layoutsOf returns the policies of a set that have a layout. Policies whose layout fixes more bytes come
// first.
func layoutsOf(byName map[string]*Policy) (all []*Policy) {
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		if p := byName[name]; p.Layout != "" {
			all = append(all, p)
		}
	}
	slices.SortStableFunc(all, func(a, b *Policy) int { return cmp.Compare(b.layout.len(), a.layout.len()) })
	return all
}
