package resp

import (
	"bytes"
	"strings"
)

// tlsHandshake is the first byte of a TLS connection. No command begins with it.
const tlsHandshake = 0x16

// inline frames a command that a person typed as one line. It unquotes the arguments in place, because an unquoted
// argument is never longer than a quoted one.
func (f *Framer) inline(b []byte) (length int, err error) {
	if b[0] == tlsHandshake {
		return 0, errTLSHere
	}
	window := b[:min(len(b), maxInlineBytes)]
	i := bytes.IndexByte(window[f.pos:], '\n')
	if i < 0 {
		if f.pos = len(window); len(window) == maxInlineBytes {
			return 0, errBigInline
		}
		return 0, nil
	}
	end := f.pos + i
	f.pos = 0
	if err := f.words(b[:end]); err != nil {
		return 0, err
	}
	switch {
	case isRequestLine(f.args):
		return 0, ErrHTTPRequest
	case len(f.args) > 0 && isHTTP(f.args[0]):
		return 0, ErrCrossProtocol
	}
	return end + 1, nil
}

// isRequestLine reports whether a line is like GET / HTTP/1.1, from a browser or curl.
func isRequestLine(words [][]byte) bool {
	return len(words) == 3 && bytes.HasPrefix(words[2], []byte("HTTP/1."))
}

// isHTTP reports whether an inline command is a line of an HTTP request, because an attacker may make a browser send
// commands to this port. Redis closes the connection after the same two words.
func isHTTP(name []byte) bool {
	return (len(name) == 4 || len(name) == 5) &&
		(strings.EqualFold(string(name), "post") || strings.EqualFold(string(name), "host:"))
}

// words splits a line into f.args.
func (f *Framer) words(line []byte) error {
	for {
		line = bytes.TrimLeft(line, " \t\r\v\f")
		if len(line) == 0 {
			return nil
		}
		if len(f.args) == f.Limits.args {
			return f.Limits.argsErr
		}
		word, rest, err := unquote(line)
		if err != nil {
			return err
		}
		if len(word) > f.Limits.bulkBytes {
			return f.Limits.bulkErr
		}
		f.args, line = append(f.args, word), rest
	}
}

// unquote reads the first word of line, in place, by Redis' rules. Blanks end a word. "..." may contain blanks and the
// escapes \n \r \t \b \a \xHH. '...' may contain only the escape \'. A closing quote must end the word.
func unquote(line []byte) (word, rest []byte, err error) {
	out, quote := 0, byte(0)
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quote == 0 && isBlank(c):
			return line[:out:out], line[i:], nil
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
			continue
		case quote != 0 && c == quote:
			if i+1 < len(line) && !isBlank(line[i+1]) {
				return nil, nil, errUnbalanced
			}
			return line[:out:out], line[i+1:], nil
		case quote == '"' && c == '\\':
			var n int
			c, n = unescape(line[i:])
			i += n - 1
		case quote == '\'' && c == '\\' && i+1 < len(line) && line[i+1] == '\'':
			c = '\''
			i++
		}
		line[out] = c
		out++
	}
	if quote != 0 {
		return nil, nil, errUnbalanced
	}
	return line[:out:out], nil, nil
}

// unescape decodes the escape at the start of b, and returns the character and the length of the escape.
func unescape(b []byte) (c byte, length int) {
	if len(b) >= 4 && b[1] == 'x' {
		if hi, lo := hexDigit(b[2]), hexDigit(b[3]); hi < 16 && lo < 16 {
			return hi<<4 | lo, 4
		}
	}
	if len(b) < 2 {
		return b[0], 1
	}
	if i := strings.IndexByte("nrtba", b[1]); i >= 0 {
		return "\n\r\t\b\a"[i], 2
	}
	return b[1], 2
}

// hexDigit returns the value of a hexadecimal digit, and 16 for any other character.
func hexDigit(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10
	}
	return 16
}

func isBlank(c byte) bool { return c == ' ' || (c >= '\t' && c <= '\r') }
