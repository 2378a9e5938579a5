package engine

import "bytes"

// IsGlob reports whether a pattern may match a string other than itself.
func IsGlob(pattern []byte) bool { return bytes.ContainsAny(pattern, `*?[\`) }

// MatchGlob reports whether name matches a pattern of Redis: * matches any bytes, ? one byte, [abc], [a-z] and
// [^a] one byte of a set, and \ the byte after it. MatchGlob backtracks to the last star only, so its work is
// at most the product of the two lengths.
func MatchGlob(pattern, name []byte) bool {
	p, n := 0, 0
	star, from := -1, 0 // the last star, and the current end of its match
	for n < len(name) {
		if p < len(pattern) && pattern[p] == '*' {
			star, from = p, n
			p++
			continue
		}
		if p < len(pattern) {
			if ok, length := matchOne(pattern[p:], name[n]); ok {
				p += length
				n++
				continue
			}
		}
		if star < 0 {
			return false
		}
		from++
		p, n = star+1, from
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// matchOne matches one byte with the first item of pattern, which is not a star, and returns the item's length.
func matchOne(pattern []byte, c byte) (ok bool, length int) {
	switch pattern[0] {
	case '?':
		return true, 1
	case '[':
		return matchSet(pattern, c)
	case '\\':
		if len(pattern) > 1 {
			return pattern[1] == c, 2
		}
	}
	return pattern[0] == c, 1
}

// matchSet matches one byte with a set in brackets. A set without a closing bracket ends with the pattern, as
// in Redis.
func matchSet(pattern []byte, c byte) (ok bool, length int) {
	i := 1
	negated := i < len(pattern) && pattern[i] == '^'
	if negated {
		i++
	}
	for ; i < len(pattern) && pattern[i] != ']'; i++ {
		low := pattern[i]
		if low == '\\' && i+1 < len(pattern) {
			i++
			low = pattern[i]
		}
		high := low
		if i+2 < len(pattern) && pattern[i+1] == '-' {
			high = pattern[i+2]
			i += 2
		}
		if low > high {
			low, high = high, low
		}
		ok = ok || low <= c && c <= high
	}
	return ok != negated, min(i+1, len(pattern))
}
