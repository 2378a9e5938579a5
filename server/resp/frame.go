package resp

import (
	"errors"
	"fmt"
)

// What the framer refuses, in Redis' words where Redis has them; the reply puts
// "ERR Protocol error: " in front.
var (
	errMultibulkLength       = errors.New("invalid multibulk length")
	errBulkLength            = errors.New("invalid bulk length")
	errUnauthMultibulkLength = errors.New("unauthenticated multibulk length")
	errUnauthBulkLength      = errors.New("unauthenticated bulk length")
	errBigCount              = errors.New("too big mbulk count string")
	errBigBulkCount          = errors.New("too big bulk count string")
	errBigInline             = errors.New("too big inline request")
	errUnbalanced            = errors.New("unbalanced quotes in request")
	errExpectedBulk          = errors.New("expected '$'")
	errBulkEnd               = errors.New("bulk string does not end in CRLF")
	errBigCommand            = errors.New("too big command")
	// errTLSHere: a client that speaks TLS would wait for an answer it understands.
	errTLSHere = errors.New("TLS on a port that has none")
	// ErrCrossProtocol: a line of an HTTP request reached the port.
	ErrCrossProtocol = errors.New("HTTP request on a RESP port")
	// ErrHTTPRequest: the line was the first one, so the sender understands an answer.
	ErrHTTPRequest = fmt.Errorf("%w: its first line", ErrCrossProtocol)
)

// Limits are what one command may take. They differ before and after AUTH.
type Limits struct {
	args, bulkBytes, commandBytes int
	argsErr, bulkErr              error // what a longer one is told
}

func OpenLimits(maxBulkBytes int) *Limits {
	return &Limits{
		args: MaxArgs, bulkBytes: maxBulkBytes, commandBytes: maxBulkBytes + commandRoomBytes,
		argsErr: errMultibulkLength, bulkErr: errBulkLength,
	}
}

func PreAuthLimits() *Limits {
	return &Limits{
		args: preAuthArgs, bulkBytes: PreAuthBulkBytes,
		commandBytes: preAuthArgs * (PreAuthBulkBytes + maxHeaderBytes),
		argsErr:      errUnauthMultibulkLength, bulkErr: errUnauthBulkLength,
	}
}

// Framer cuts RESP commands, multibulk and inline, out of a growing window of
// bytes. It remembers how far it has come in an unfinished command, so that the
// bytes of a slow drip are looked at once. It allocates nothing for lengths that
// are only declared.
type Framer struct {
	Limits *Limits
	// The unfinished command. Offsets count from its first byte, so that the
	// window may move between calls.
	pos   int // bytes before it need no second look
	left  int // arguments still to come, 0 before the count is known
	bulk  int // length of the argument under way, -1 when its header comes next
	spans []span
	args  [][]byte // handed out, reused by the next command
}

// span is where an argument lies in its command.
type span struct{ from, to uint32 }

// Next returns the first command in b, and how many bytes of b it and any empty
// commands before it take. nil args: b ends inside a command; call again with
// b[used:] and more bytes behind. The arguments are slices of b. After an error
// the stream is lost.
func (f *Framer) Next(b []byte) (args [][]byte, used int, err error) {
	clear(f.args) // they must not hold on to a buffer that is given back
	f.args = f.args[:0]
	for used < len(b) {
		n, err := f.command(b[used:])
		if err != nil || n == 0 {
			return nil, used, err
		}
		used += n
		if len(f.args) > 0 {
			return f.args, used, nil
		}
	}
	return nil, used, nil
}

// command frames the command b begins with into f.args, which stays empty for an
// empty one, and returns its length; 0 when its end has not come yet.
func (f *Framer) command(b []byte) (length int, err error) {
	if f.left == 0 {
		f.spans = f.spans[:0]
		if b[0] != '*' {
			return f.inline(b)
		}
		count, n := header(b[1:])
		switch {
		case n == badNumber:
			return 0, errMultibulkLength
		case n == longNumber:
			return 0, errBigCount
		case n == 0:
			return 0, nil
		case count <= 0: // *0 and *-1 are no commands, as in Redis
			return 1 + n, nil
		case count > f.Limits.args:
			return 0, f.Limits.argsErr
		}
		if length := f.whole(b, 1+n, count); length > 0 {
			return length, nil
		}
		clear(f.args[:cap(f.args)]) // of what it had begun
		f.pos, f.left, f.bulk = 1+n, count, -1
	}
	return f.arguments(b)
}

// whole frames the arguments of a command that has arrived entirely and has none
// of 100 bytes or more, as nearly every one. It returns the command's length; 0
// leaves it to the thorough way, which also knows what is wrong. It is tried
// once a command. Every limit is above what it accepts.
func (f *Framer) whole(b []byte, pos, count int) (length int) {
	args := f.args
	for range count {
		if len(b) < pos+5 || b[pos] != '$' {
			return 0
		}
		n, from := int(b[pos+1]-'0'), pos+4
		if n > 9 {
			return 0
		}
		if b[pos+2] != '\r' {
			second := int(b[pos+2] - '0')
			if n == 0 || second > 9 || b[pos+3] != '\r' {
				return 0
			}
			n, from = 10*n+second, pos+5
		}
		end := from + n
		if len(b) < end+2 || b[from-1] != '\n' || b[end] != '\r' || b[end+1] != '\n' {
			return 0
		}
		args, pos = append(args, b[from:end:end]), end+2
	}
	f.args = args
	return pos
}

// arguments frames what follows the count of a multibulk command.
func (f *Framer) arguments(b []byte) (length int, err error) {
	for ; f.left > 0; f.left-- {
		if f.bulk < 0 {
			if err := f.bulkHeader(b); err != nil || f.bulk < 0 {
				return 0, err
			}
		}
		end := f.pos + f.bulk
		if len(b) < end+2 {
			return 0, nil
		}
		if b[end] != '\r' || b[end+1] != '\n' {
			return 0, errBulkEnd
		}
		f.spans = append(f.spans, span{uint32(f.pos), uint32(end)})
		f.pos, f.bulk = end+2, -1
	}
	length, f.pos = f.pos, 0
	for _, s := range f.spans {
		f.args = append(f.args, b[s.from:s.to:s.to])
	}
	return length, nil
}

// bulkHeader reads the length of the next argument into f.bulk, which stays -1
// when it has not all come yet.
func (f *Framer) bulkHeader(b []byte) error {
	if f.pos >= len(b) {
		return nil
	}
	if c := b[f.pos]; c != '$' {
		return fmt.Errorf("%w, got '%c'", errExpectedBulk, visible(c))
	}
	length, n := header(b[f.pos+1:])
	switch {
	case n == badNumber || (n > 0 && length < 0):
		return errBulkLength
	case n == longNumber:
		return errBigBulkCount
	case n == 0:
		return nil
	case length > f.Limits.bulkBytes:
		return f.Limits.bulkErr
	case f.pos+length > f.Limits.commandBytes:
		return errBigCommand
	}
	f.pos, f.bulk = f.pos+1+n, length
	return nil
}

// Shrink gives back what a large command left behind. Only between commands.
func (f *Framer) Shrink() {
	if f.left == 0 && cap(f.args) > keptArgs {
		f.args, f.spans = nil, nil
	}
}
