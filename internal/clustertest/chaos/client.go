package chaos

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

const (
	// dialTimeout is long for loopback. The kernel accepts connections also for a paused process.
	dialTimeout = 500 * time.Millisecond
	// persistFor is how long an operation with an ID is repeated. The server
	// remembers an ID for 60 s.
	persistFor = 20 * time.Second
	// backoff is the pause after a command that was not applied or has an unknown outcome.
	backoff = 20 * time.Millisecond
)

// Client is one caller of the cluster. It uses one node until that node fails, and then another. It repeats nothing by
// itself. It is not safe for use by several goroutines.
type Client struct {
	ID      int
	addrs   []string
	start   time.Time // the origin of the clock of all clients
	timeout time.Duration
	rng     *rand.Rand
	tally   *Tally
	// greeting, if set, is the first command of a connection.
	greeting []string

	conn *Conn
	at   int // index of the current node
}

// Answer is the outcome of one command, or of one command and its repetitions.
type Answer struct {
	Reply            any
	Outcome          Outcome
	CallNs, ReturnNs int64
	Tries            int
}

// ints returns the integers of a decision's reply, or nil.
func (a *Answer) ints() []int64 {
	items, ok := a.Reply.([]any)
	if a.Outcome != Answered || !ok {
		return nil
	}
	var out []int64
	for _, item := range items {
		if n, ok := item.(int64); ok {
			out = append(out, n)
		}
	}
	return out
}

// Call sends a command once.
func (c *Client) Call(args ...string) Answer {
	a := Answer{CallNs: c.nowNs(), Tries: 1}
	reply, err := c.do(args)
	a.Reply, a.ReturnNs = reply, c.nowNs()
	var word string
	a.Outcome, word = classify(reply, err)
	c.tally.count(a.Outcome, word, a.ReturnNs)
	c.move(a, err)
	return a
}

// Persist sends a command that is safe to repeat until a reply arrives or persistFor is over. After an attempt with an
// unknown outcome, a later attempt that was not applied leaves the outcome unknown.
func (c *Client) Persist(args ...string) Answer {
	first := c.Call(args...)
	a := first
	for a.Outcome == Unknown && time.Duration(c.nowNs()-first.CallNs) < persistFor {
		time.Sleep(backoff)
		again := c.Call(args...)
		again.CallNs, again.Tries = first.CallNs, a.Tries+1
		if again.Outcome == NotApplied {
			again.Outcome = Unknown
		}
		a = again
	}
	return a
}

func (c *Client) do(args []string) (any, error) {
	if c.conn == nil {
		conn, err := Dial(c.addrs[c.at], dialTimeout)
		if err != nil {
			return nil, err
		}
		c.conn = conn
		if len(c.greeting) > 0 {
			if reply, err := conn.Do(c.timeout, c.greeting...); err != nil || reply != "OK" {
				c.Close()
				return reply, err
			}
		}
	}
	return c.conn.Do(c.timeout, args...)
}

// move chooses the node for the next command.
func (c *Client) move(a Answer, err error) {
	switch {
	case err != nil:
		c.Close()
		c.at = c.rng.IntN(len(c.addrs))
	case a.Outcome == NotApplied:
		c.follow(a.Reply)
	}
}

// follow changes to the node that MOVED names. After any other reply it changes to a random node half of the time.
func (c *Client) follow(reply any) {
	var text ErrorReply
	if err, ok := reply.(ErrorReply); ok {
		text = err
	}
	next := c.rng.IntN(2 * len(c.addrs)) // from len(c.addrs) on: it stays
	if fields := strings.Fields(string(text)); len(fields) == 3 && fields[0] == "MOVED" {
		next = slices.Index(c.addrs, fields[2])
	}
	if next >= 0 && next < len(c.addrs) && next != c.at {
		c.Close()
		c.at = next
	}
}

// Close closes the connection. The next command opens another.
func (c *Client) Close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

func (c *Client) nowNs() int64 { return time.Since(c.start).Nanoseconds() }

// pause waits for a random time up to most. It returns false when ctx is over.
func (c *Client) pause(ctx context.Context, most time.Duration) bool {
	return sleep(ctx, time.Duration(c.rng.Int64N(int64(most)))) == nil
}

var errInterrupted = errors.New("interrupted")

// sleep waits for d or until ctx is over.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return errInterrupted
	}
}
