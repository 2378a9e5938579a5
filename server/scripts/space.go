package scripts

import "bytes"

// normal returns a Lua text in the form that all texts share which differ only in white space and comments. White space
// and comments between two tokens become one line break if they contain one, else one space; at both ends they vanish.
// Strings stay as they are. ok is false if a string or a long comment has no end: such a text is not Lua.
//
// A line break is not replaced by a space or by nothing, because Lua 5.1 refuses a call whose parenthesis is on the
// next line.
func normal(text []byte) (out []byte, ok bool) {
	out = make([]byte, 0, len(text))
	gap := byte(0) // of white space and comments since the last token: 0 for none, else what replaces them
	for i := 0; i < len(text); {
		n, isSpace := token(text[i:])
		if n == 0 {
			return nil, false
		}
		piece := text[i : i+n]
		i += n
		if isSpace {
			if gap != '\n' {
				gap = ' '
			}
			if bytes.ContainsAny(piece, "\r\n") {
				gap = '\n'
			}
			continue
		}
		if gap != 0 && len(out) > 0 {
			out = append(out, gap)
		}
		gap, out = 0, append(out, piece...)
	}
	return out, true
}

// token returns the length of what text begins with: a string, a byte of another token, or a piece of white space or a
// comment. It returns 0 if the string or the comment has no end. A comment does not contain its line break.
func token(text []byte) (n int, isSpace bool) {
	switch c := text[0]; {
	case bytes.IndexByte([]byte(" \t\v\f\r\n"), c) >= 0:
		return 1, true
	case c == '"' || c == '\'':
		return quoted(text), false
	case bytes.HasPrefix(text, []byte("--")):
		if n, long := bracketed(text[2:]); long && n > 0 {
			return 2 + n, true
		} else if long {
			return 0, true
		}
		if n = bytes.IndexAny(text, "\r\n"); n < 0 {
			n = len(text)
		}
		return n, true
	case c == '[':
		if n, long := bracketed(text); long {
			return n, false
		}
	}
	return 1, false
}

// quoted returns the length of the quoted string that text begins with, or 0 if it has no end on its line.
func quoted(text []byte) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case text[0]:
			return i + 1
		case '\\':
			i++
		case '\r', '\n':
			return 0
		}
	}
	return 0
}

// bracketed reports whether text begins with a long bracket like [[ or [==[, and returns the length of what it
// encloses with the brackets, or 0 if it has no end.
func bracketed(text []byte) (n int, long bool) {
	level := 0
	for level+1 < len(text) && text[level+1] == '=' {
		level++
	}
	if len(text) < level+2 || text[0] != '[' || text[level+1] != '[' {
		return 0, false
	}
	end := append(append([]byte("]"), text[1:level+1]...), ']')
	at := bytes.Index(text[level+2:], end)
	if at < 0 {
		return 0, true
	}
	return level + 2 + at + len(end), true
}
