package chaos

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

var (
	// errProtocol reports that the peer does not speak RESP2. Its connection cannot be used again.
	errProtocol = errors.New("not RESP2")
	// errNotSent reports that no byte of the command has left this process.
	errNotSent = errors.New("not sent")
)

// maxReplyItems bounds a reply's strings and arrays. It is far above any reply to a command of the harness.
const maxReplyItems = 1 << 20

// ErrorReply is a reply that begins with a minus sign.
type ErrorReply string

func (e ErrorReply) Error() string { return string(e) }

// Conn is one client connection. It retries nothing, because a retry would hide the faults that the harness looks for.
// It is not safe for use by several goroutines.
type Conn struct {
	c net.Conn
	r *bufio.Reader
}

// Dial connects within timeout. Its error wraps errNotSent.
func Dial(addr string, timeout time.Duration) (*Conn, error) {
	c, err := net.DialTimeout("tcp", addr, timeout)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotSent, err)
	}
	return &Conn{c: c, r: bufio.NewReader(c)}, nil
}

func (c *Conn) Close() error { return c.c.Close() }

// Do sends one command and reads its reply: an int64, a string, nil, an ErrorReply or a []any of these. After an error
// the command may or may not have been applied, and the caller must close the connection.
func (c *Conn) Do(timeout time.Duration, args ...string) (any, error) {
	if err := c.c.SetDeadline(time.Now().Add(timeout)); err != nil {
		return nil, err
	}
	if _, err := c.c.Write(appendCommand(nil, args)); err != nil {
		return nil, err
	}
	return readReply(c.r)
}

func appendCommand(b []byte, args []string) []byte {
	b = fmt.Appendf(b, "*%d\r\n", len(args))
	for _, arg := range args {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(arg), arg)
	}
	return b
}

func readReply(r *bufio.Reader) (any, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	if len(line) < 3 || line[len(line)-2] != '\r' {
		return nil, fmt.Errorf("%w: line %q", errProtocol, line)
	}
	kind, rest := line[0], line[1:len(line)-2]
	switch kind {
	case '+':
		return rest, nil
	case '-':
		return ErrorReply(rest), nil
	}
	n, err := strconv.ParseInt(rest, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%w: line %q", errProtocol, line)
	}
	switch {
	case kind == ':':
		return n, nil
	case n == -1 && (kind == '$' || kind == '*'):
		return nil, nil
	case n < 0 || n > maxReplyItems:
		return nil, fmt.Errorf("%w: length %d", errProtocol, n)
	case kind == '$':
		return readBulk(r, int(n))
	case kind == '*':
		return readArray(r, int(n))
	}
	return nil, fmt.Errorf("%w: line %q", errProtocol, line)
}

func readBulk(r *bufio.Reader, n int) (any, error) {
	b := make([]byte, n+2)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, err
	}
	return string(b[:n]), nil
}

func readArray(r *bufio.Reader, n int) (any, error) {
	var items []any
	for range n {
		item, err := readReply(r)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}
