package resp

import (
	"errors"
	"fmt"
)

// Errors of the framer. The texts are those of Redis if Redis has them. The reply adds "ERR Protocol error: ".
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
	// errTLSHere: the client speaks TLS. Without this error it would wait for the answer to its handshake.
	errTLSHere = errors.New("TLS on a port without TLS")
	// ErrCrossProtocol: a line of an HTTP request reached the port.
	ErrCrossProtocol = errors.New("HTTP request on a RESP port")
	// ErrHTTPRequest: the line was the first one, so the sender understands an HTTP answer.
	ErrHTTPRequest = fmt.Errorf("%w: its first line", ErrCrossProtocol)
)

// Limits bound one command. They differ before and after AUTH.
type Limits struct {
	args, bulkBytes, commandBytes int
	argsErr, bulkErr              error // errors for a command that exceeds them
}

// OpenLimits returns the limits after AUTH, with a bound on one argument.
func OpenLimits(maxBulkBytes int) *Limits {
	return &Limits{
		args: MaxArgs, bulkBytes: maxBulkBytes, commandBytes: maxBulkBytes + commandRoomBytes,
		argsErr: errMultibulkLength, bulkErr: errBulkLength,
	}
}

// PreAuthLimits returns the limits before AUTH.
func PreAuthLimits() *Limits {
	return &Limits{
		args: preAuthArgs, bulkBytes: PreAuthBulkBytes,
		commandBytes: preAuthArgs * (PreAuthBulkBytes + maxHeaderBytes),
		argsErr:      errUnauthMultibulkLength, bulkErr: errUnauthBulkLength,
	}
}

// Framer cuts RESP commands, multibulk and inline, out of a growing window of bytes. It remembers its position in an
// unfinished command, so that it reads each byte only once even if input arrives slowly. It allocates nothing for
// lengths that are only declared.
type Framer struct {
	Limits *Limits
	// The fields below describe the unfinished command. Offsets count from its first byte, so that the window may move
	// between calls.
	pos   int // bytes before it are already framed
	left  int // arguments still to come; 0 before the count is known
	bulk  int // length of the current argument; -1 before its header
	spans []span
	args  [][]byte // returned by Next, reused by the next command
}

// span is the position of an argument in its command.
type span struct{ from, to uint32 }

// Next returns the first command in b, and the bytes of b that it takes together with preceding empty commands. nil
// args mean that b ends within a command. The caller then calls again with b[used:] and further bytes. The arguments
// are slices of b. After an error the stream cannot be used further.
func (f *Framer) Next(b []byte) (args [][]byte, used int, err error) {
	clear(f.args) // the arguments must not keep a released buffer alive
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

// command frames the command at the start of b into f.args, which stays empty for an empty command. It returns the
// length of the command, or 0 if it is incomplete.
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
		case count <= 0: // *0 and *-1 are empty commands, as in Redis
			return 1 + n, nil
		case count > f.Limits.args:
			return 0, f.Limits.argsErr
		}
		if length := f.whole(b, 1+n, count); length > 0 {
			return length, nil
		}
		clear(f.args[:cap(f.args)]) // removes the arguments that whole had begun
		f.pos, f.left, f.bulk = 1+n, count, -1
	}
	return f.arguments(b)
}

// whole is the fast path: it frames a complete command whose arguments are all shorter than 100 bytes, which is nearly
// every command. It returns the command's length, or 0 to leave the command to the slow path, which also detects
// errors. It is tried once per command. All limits exceed the lengths that it accepts.
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

// arguments frames the arguments of a multibulk command.
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

// bulkHeader reads the length of the next argument into f.bulk, which stays -1 while the header is incomplete.
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

// Shrink releases the memory of a large command. It has an effect only between commands.
func (f *Framer) Shrink() {
	if f.left == 0 && cap(f.args) > keptArgs {
		f.args, f.spans = nil, nil
	}
}
