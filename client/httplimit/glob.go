package httplimit

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// maxGlobBytes bounds a pattern with '*', without its stars. match keeps a bit for each byte in two words, so a
// path of n bytes takes n steps.
const maxGlobBytes = 127

// glob is a compiled pattern of a path; see the package comment for its syntax.
//
// glob is a nondeterministic automaton (Glushkov), simulated by bits: state i says that the first i bytes of
// the pattern match.
type glob struct {
	next    [256]bits // by byte of the path: bit i is set if this is the i-th byte of the pattern, stars not counted
	any     bits      // the states before a "**": every byte of the path leads back to them
	segment bits      // the states before a '*': every byte but the slash leads back to them
	skip    bits      // the states after the first slash of "/**/": the second slash may be absent
	accept  bits      // the states in which the whole pattern matches
}

// bits is a set of states. It is a struct because the compiler keeps structs in registers, but not arrays.
type bits struct{ lo, hi uint64 }

func bit(i int) bits {
	if i < 64 {
		return bits{lo: 1 << i}
	}
	return bits{hi: 1 << (i - 64)}
}

func (b bits) and(o bits) bits { return bits{b.lo & o.lo, b.hi & o.hi} }
func (b bits) or(o bits) bits  { return bits{b.lo | o.lo, b.hi | o.hi} }
func (b bits) shift() bits     { return bits{b.lo << 1, b.hi<<1 | b.lo>>63} }
func (b bits) empty() bool     { return b.lo|b.hi == 0 }

// match reports whether a clean path matches. It does not allocate.
func (g *glob) match(path string) bool {
	states, end := bit(0), g.accept.and(g.any)
	for i := range len(path) {
		c := path[i]
		if c == '/' && i == len(path)-1 && !states.and(g.accept).empty() {
			return true
		}
		next := states.shift().and(g.next[c])
		next = next.or(next.and(g.skip).shift())
		next = next.or(states.and(g.any))
		if c != '/' {
			next = next.or(states.and(g.segment))
		}
		if next.empty() {
			return false
		}
		if !next.and(end).empty() { // every continuation matches
			return true
		}
		states = next
	}
	return !states.and(g.accept).empty()
}

// compileGlob compiles a path with '*'. The path begins with '/' or "**".
func compileGlob(pattern string) (*glob, error) {
	g, n := new(glob), 0
	for i := 0; i < len(pattern); {
		if pattern[i] == '*' {
			stars := len(pattern[i:]) - len(strings.TrimLeft(pattern[i:], "*"))
			if err := g.star(pattern, i, stars, n); err != nil {
				return nil, err
			}
			i += stars
			continue
		}
		literal, size, err := literalAt(pattern[i:])
		if err != nil {
			return nil, err
		}
		if n+len(literal) > maxGlobBytes {
			return nil, fmt.Errorf("a pattern with '*' has at most %d bytes besides", maxGlobBytes)
		}
		for _, c := range []byte(literal) {
			n++
			g.next[c] = g.next[c].or(bit(n))
		}
		i += size
	}
	g.accept = g.accept.or(bit(n))
	return g, nil
}

// star adds the one or two stars at byte i of the pattern, which follow n bytes that are not stars.
func (g *glob) star(pattern string, i, stars, n int) error {
	switch {
	case stars > 2:
		return errors.New("three stars are not a wildcard: '*' matches within a segment, '**' across segments")
	case stars == 1:
		g.segment = g.segment.or(bit(n))
		return nil
	}
	g.any = g.any.or(bit(n))
	before, after := pattern[:i], pattern[i+2:]
	if strings.HasPrefix(after, "/**") && (len(after) == 3 || after[3] == '/') {
		return errors.New("'**/**' is '**'")
	}
	if strings.HasSuffix(before, "/") && after == "" {
		g.accept = g.accept.or(bit(n - 1))
	}
	if strings.HasSuffix(before, "/") && strings.HasPrefix(after, "/") {
		g.skip = g.skip.or(bit(n))
	}
	return nil
}

// literalAt returns the first character of a pattern in the form that readingsOf gives to paths: decoded,
// except an encoded slash, which does not end a segment.
func literalAt(pattern string) (literal string, size int, err error) {
	if pattern[0] != '%' {
		return pattern[:1], 1, nil
	}
	if len(pattern) >= 3 {
		if literal, err = url.PathUnescape(pattern[:3]); err == nil {
			if literal == "/" {
				literal = encodedSlash
			}
			return literal, 3, nil
		}
	}
	return "", 0, errors.New("'%' begins an encoded character, as in %2A; the character itself is written %25")
}
