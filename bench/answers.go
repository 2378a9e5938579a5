package bench

import (
	"bytes"
	"fmt"
	"io"
)

const (
	// maxElements is more than any decision has.
	maxElements = 16
	// maxLine is longer than any line of a limiter's reply, errors included.
	maxLine = 4096
)

// answer is the part of a server's reply that a decision needs.
type answer struct {
	kind     byte     // of RESP: one of * : + - $
	elements int      // of an array
	first    [2]int64 // its first integers, or the integer itself
	said     []byte   // text of a + or - line, without its end; valid until the next read
}

// answers reads replies from a connection one after the other, each in one pass over its bytes, because a load
// generator reads millions per second.
type answers struct {
	in   io.Reader
	buf  []byte
	r, w int // unread is buf[r:w]
	at   int // buf[r:at] has been scanned for the reply that is being read
}

// newAnswers returns a reader with a buffer for about this many replies.
func newAnswers(in io.Reader, replies int) *answers {
	const usualReply, least, most = 48, 512, 64 << 10 // bytes
	return &answers{in: in, buf: make([]byte, min(max(replies*usualReply, least), most))}
}

// next reads one reply. It returns ErrNotADecision for a malformed reply, or a reply that no decision has. After an
// error of the connection it may be called again, and begins with the same reply.
func (a *answers) next() (answer, error) {
	a.at = a.r
	reply, err := a.reply()
	if err == nil {
		a.r = a.at
	}
	return reply, err
}

func (a *answers) reply() (reply answer, err error) {
	line, err := a.line()
	if err != nil {
		return answer{}, err
	}
	reply.kind = line[0]
	switch reply.kind {
	case '+', '-':
		reply.said = line[1:]
	case ':':
		reply.first[0], err = integer(line[1:])
	case '$':
		err = a.skipBulk(line)
	case '*':
		reply.elements, err = a.elements(line, &reply.first)
	default:
		err = fmt.Errorf("%w: %q", ErrNotADecision, line)
	}
	return reply, err
}

// elements reads the array after head, and keeps its first integers.
func (a *answers) elements(head []byte, first *[2]int64) (int, error) {
	n, err := integer(head[1:])
	if err != nil || n < 1 || n > maxElements {
		return 0, fmt.Errorf("%w: an array of %q", ErrNotADecision, head[1:])
	}
	for i := range int(n) {
		line, err := a.line()
		if err != nil {
			return 0, err
		}
		switch line[0] {
		case ':':
			v, err := integer(line[1:])
			if err != nil {
				return 0, err
			}
			if i < len(first) {
				first[i] = v
			}
		case '$':
			if err := a.skipBulk(line); err != nil {
				return 0, err
			}
		case '+':
		default:
			return 0, fmt.Errorf("%w: %q in it", ErrNotADecision, line)
		}
	}
	return int(n), nil
}

// skipBulk skips the bulk string after head.
func (a *answers) skipBulk(head []byte) error {
	n, err := integer(head[1:])
	if err != nil || n < -1 || n > maxLine {
		return fmt.Errorf("%w: a text of %q", ErrNotADecision, head[1:])
	}
	if n == -1 { // null
		return nil
	}
	for a.w-a.at < int(n)+2 {
		if err := a.more(); err != nil {
			return err
		}
	}
	a.at += int(n) + 2
	return nil
}

// line returns a non-empty line without its end. It is valid until the next read.
func (a *answers) line() ([]byte, error) {
	for seen := 0; ; {
		if end := bytes.IndexByte(a.buf[a.at+seen:a.w], '\n'); end >= 0 {
			line := a.buf[a.at : a.at+seen+end+1]
			a.at += len(line)
			if len(line) < len("x\r\n") || line[len(line)-2] != '\r' {
				return nil, fmt.Errorf("%w: %q", ErrNotADecision, line)
			}
			return line[:len(line)-2], nil
		}
		if seen = a.w - a.at; seen > maxLine {
			return nil, fmt.Errorf("%w: a line of more than %d bytes", ErrNotADecision, maxLine)
		}
		if err := a.more(); err != nil {
			return nil, err
		}
	}
}

// more reads further bytes after the unread ones.
func (a *answers) more() error {
	a.w = copy(a.buf, a.buf[a.r:a.w])
	a.r, a.at = 0, a.at-a.r
	if a.w == len(a.buf) {
		a.buf = append(a.buf, make([]byte, len(a.buf))...)
	}
	n, err := a.in.Read(a.buf[a.w:])
	a.w += n
	if n > 0 {
		return nil // a persistent error returns again
	}
	return err
}

// integer reads a decimal number of at most 18 digits.
func integer(text []byte) (n int64, err error) {
	digits := text
	if len(text) > 0 && text[0] == '-' {
		digits = text[1:]
	}
	if len(digits) == 0 || len(digits) > 18 {
		return 0, fmt.Errorf("%w: %q is not a number", ErrNotADecision, text)
	}
	for _, d := range digits {
		if d < '0' || d > '9' {
			return 0, fmt.Errorf("%w: %q is not a number", ErrNotADecision, text)
		}
		n = n*10 + int64(d-'0')
	}
	if len(digits) < len(text) {
		n = -n
	}
	return n, nil
}

// tally counts answers.
type tally struct {
	answers  int64
	admitted int64
	errors   int64
	said     string // the first error
}

func (t *tally) add(other tally) {
	t.answers += other.answers
	t.admitted += other.admitted
	t.errors += other.errors
	if t.said == "" {
		t.said = other.said
	}
}

// tallied reads one answer for each expected reply. Each must be a decision or an error. Any other answer is
// ErrNotADecision.
func (a *answers) tallied(expected []Reply) (t tally, err error) {
	err = a.tallyOn(&t, expected)
	return t, err
}

// tallyOn continues a tally after the answers that t already counts.
func (a *answers) tallyOn(t *tally, expected []Reply) error {
	for _, one := range expected[t.answers:] {
		got, err := a.next()
		if err != nil {
			return err
		}
		t.answers++
		if got.kind == '-' {
			t.add(tally{errors: 1, said: string(got.said)})
			continue
		}
		admitted, err := one.Read(got)
		if err != nil {
			return err
		}
		if admitted {
			t.admitted++
		}
	}
	return nil
}
