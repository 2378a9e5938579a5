package migrate

import (
	"bytes"
	"encoding/hex"
)

// entry is a line of MONITOR: a command that a client of Redis sent.
type entry struct {
	db   string
	addr string // of the client; "lua": a script sent the command
	args []string
}

// parseEntry parses a line like
//
//	1339518083.107412 [0 127.0.0.1:60866] "set" "key" "va\x00lue"
//
// It returns false for any other line. Clients choose the bytes of the arguments; Redis escapes them.
func parseEntry(line []byte) (e entry, ok bool) {
	_, rest, found := bytes.Cut(line, []byte(" ["))
	if !found {
		return e, false
	}
	from, rest, found := bytes.Cut(rest, []byte("] "))
	db, addr, both := bytes.Cut(from, []byte(" "))
	if !found || !both {
		return e, false
	}
	e.db, e.addr = string(db), string(addr)
	for len(rest) > 0 {
		arg, after, ok := unquote(rest)
		if !ok {
			return e, false
		}
		e.args = append(e.args, arg)
		rest = bytes.TrimPrefix(after, []byte(" "))
	}
	return e, len(e.args) > 0
}

// unquote reads the quoted argument that text begins with, and returns what follows it.
func unquote(text []byte) (arg string, rest []byte, ok bool) {
	if len(text) == 0 || text[0] != '"' {
		return "", nil, false
	}
	var out []byte
	for i := 1; i < len(text); i++ {
		switch c := text[i]; c {
		case '"':
			return string(out), text[i+1:], true
		case '\\':
			b, used := unescape(text[i+1:])
			if used == 0 {
				return "", nil, false
			}
			out = append(out, b)
			i += used
		default:
			out = append(out, c)
		}
	}
	return "", nil, false
}

// unescape returns the byte that the rest of an escape sequence stands for, and the length of that rest, or 0 if Redis
// writes no such sequence.
func unescape(text []byte) (b byte, used int) {
	if len(text) == 0 {
		return 0, 0
	}
	switch text[0] {
	case '\\', '"':
		return text[0], 1
	case 'n':
		return '\n', 1
	case 'r':
		return '\r', 1
	case 't':
		return '\t', 1
	case 'a':
		return '\a', 1
	case 'b':
		return '\b', 1
	case 'x':
		if len(text) < 3 {
			return 0, 0
		}
		var one [1]byte
		if _, err := hex.Decode(one[:], text[1:3]); err != nil {
			return 0, 0
		}
		return one[0], 3
	}
	return 0, 0
}
