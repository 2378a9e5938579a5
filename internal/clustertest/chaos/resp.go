package chaos

import (
	"errors"
	"fmt"
	"net"
	"time"

	redigo "github.com/gomodule/redigo/redis"
)

// errNotSent reports that no byte of the command has left this process.
var errNotSent = errors.New("not sent")

// ErrorReply is a reply that begins with a minus sign.
type ErrorReply string

func (e ErrorReply) Error() string { return string(e) }

// Conn is one client connection. It retries nothing, because a retry would hide the faults that the harness looks for.
// It is not safe for use by several goroutines.
type Conn struct {
	net net.Conn
	c   redigo.Conn
}

// Dial connects within timeout. Its error wraps errNotSent.
func Dial(addr string, timeout time.Duration) (*Conn, error) {
	c, err := net.DialTimeout("tcp", addr, timeout)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotSent, err)
	}
	return &Conn{c, redigo.NewConn(c, 0, 0)}, nil
}

func (c *Conn) Close() error { return c.c.Close() }

// Do sends one command and reads its reply: an int64, a string, nil, an ErrorReply or a []any of these. After an error
// the command may or may not have been applied, and the caller must close the connection.
func (c *Conn) Do(timeout time.Duration, args ...string) (any, error) {
	if err := c.net.SetWriteDeadline(time.Now().Add(timeout)); err != nil {
		return nil, err
	}
	reply, err := redigo.DoWithTimeout(c.c, timeout, args[0], redigo.Args{}.AddFlat(args[1:])...)
	if text, refused := err.(redigo.Error); refused {
		return ErrorReply(text), nil
	}
	return textsIn(reply), err
}

// textsIn returns a reply of redigo with strings for bulk strings.
func textsIn(reply any) any {
	switch v := reply.(type) {
	case []byte:
		return string(v)
	case redigo.Error:
		return ErrorReply(v)
	case []any:
		for i := range v {
			v[i] = textsIn(v[i])
		}
	}
	return reply
}
