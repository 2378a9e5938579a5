package clienttest

import (
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
)

// redigoPool is a client of redigo, which uses RESP2 and sends no commands of its own. The pool tests an idle
// connection with PING, as redigo's documentation advises.
type redigoPool struct{ *redis.Pool }

func dialRedigo(_ *testing.T, addr, password string) (goClient, error) {
	return redigoPool{&redis.Pool{
		Dial: func() (redis.Conn, error) { return redis.Dial("tcp", addr, redis.DialPassword(password)) },
		TestOnBorrow: func(c redis.Conn, _ time.Time) error {
			_, err := c.Do("PING")
			return err
		},
		MaxIdle: 1,
	}}, nil
}

func (p redigoPool) close() { _ = p.Close() }

func (p redigoPool) do(args []string) (any, error) {
	c := p.Get()
	defer func() { _ = c.Close() }()
	return c.Do(args[0], anys(args[1:])...)
}

func (p redigoPool) pipeline(commands [][]string) ([]any, error) {
	return p.flush(commands, "")
}

func (p redigoPool) transaction(commands [][]string) ([]any, error) {
	return p.flush(append([][]string{{"MULTI"}}, commands...), "EXEC")
}

// flush sends the commands and the command last at once. It returns the reply to last, or the replies to all commands
// if last is empty.
func (p redigoPool) flush(commands [][]string, last string) ([]any, error) {
	c := p.Get()
	defer func() { _ = c.Close() }()
	for _, args := range commands {
		if err := c.Send(args[0], anys(args[1:])...); err != nil {
			return nil, err
		}
	}
	return redis.Values(c.Do(last))
}

func TestRedigo(t *testing.T) { testGoClient(t, dialRedigo, nil) }
