package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// maxAttempts bounds how often a command is sent. After that, an election is over, or lasts longer than any
	// deadline of a request.
	maxAttempts = 4
	// retryPause is the pause before the second attempt. It doubles, and a random part of up to the same length is
	// added, so that clients that failed together do not return together.
	retryPause = 2 * time.Millisecond
	// mostAtOnce bounds a pipeline of DecideAll or Usages. go-redis writes a whole pipeline before it reads a reply,
	// and weir does not read from a client that does not read its replies. A pipeline whose replies exceed the
	// buffers of the connection would therefore block both sides.
	mostAtOnce = 4096
)

// once is a command that go-redis does not resend. This package decides what is safe to resend.
type once struct{ *redis.Cmd }

func (once) NoRetry() bool { return true }

// call is a command in flight.
type call struct {
	args []any
	safe bool // a resent command counts once
	slow bool // its answer may take long, so it is not pipelined
	cmd  once
	err  error
}

// again reports whether the call may be resent. A call that failed to dial is not, because go-redis has already
// dialled several times.
func (c *call) again() bool {
	o := outcomeOf(c.err)
	return o == notApplied && !dialing(c.err) || o == inDoubt && c.safe
}

// send carries out calls in a pipeline within the deadline of ctx. It resends the calls for which that is safe.
// Every call then has its error or its reply.
func (c *Client) send(ctx context.Context, calls []*call) {
	pause := retryPause
	for attempt := 1; ; attempt++ {
		c.sendOnce(ctx, calls)
		calls = keep(calls, (*call).again)
		if len(calls) == 0 || attempt == maxAttempts {
			return
		}
		timer := time.NewTimer(pause + rand.N(pause))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		pause *= 2
		c.counts.retries.Add(int64(len(calls)))
	}
}

func (c *Client) sendOnce(ctx context.Context, calls []*call) {
	for _, k := range calls {
		k.cmd = once{redis.NewCmd(ctx, k.args...)}
	}
	if len(calls) == 1 {
		if k := calls[0]; k.slow {
			k.err = c.rdb.Process(ctx, k.cmd)
		} else {
			k.err = c.pipeliner.process(ctx, k.cmd)
		}
		return
	}
	for some := range slices.Chunk(calls, mostAtOnce) {
		pipe := c.rdb.Pipeline()
		for _, k := range some {
			_ = pipe.Process(ctx, k.cmd) // fails in Exec, if it does
		}
		_, err := pipe.Exec(ctx)
		for _, k := range some {
			k.err = ownError(k.cmd, err)
		}
	}
}

// do carries out one command that is not a decision, and returns its reply. If safe is set, it resends the
// command when its outcome is unknown.
func (c *Client) do(ctx context.Context, safe bool, args ...any) (any, error) {
	if c.Down() {
		return nil, ErrUnavailable
	}
	bounded, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	k := &call{args: args, safe: safe}
	c.send(bounded, []*call{k})
	if err := c.judge(ctx, k.err); err != nil {
		return nil, err
	}
	return k.cmd.Val(), nil
}

// judge converts the error of a call to an error of this package, and reports the outcome to the circuit
// breaker.
func (c *Client) judge(ctx context.Context, err error) error {
	outcome := outcomeOf(err)
	if c.options.lockedOut(err) {
		outcome = notApplied
	}
	switch outcome {
	case done:
		c.breaker.succeeded()
		return nil
	case refused:
		c.breaker.succeeded()
		c.counts.refused.Add(1)
		if redis.HasErrorPrefix(err, "OOM") {
			return fmt.Errorf("%w: %w", ErrFull, err)
		}
		if redis.HasErrorPrefix(err, "IDUSED") {
			return fmt.Errorf("%w: %w: %w", ErrRefused, ErrIDUsed, err)
		}
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	ended, gone := contextError(ctx), absent(err) || c.options.lockedOut(err)
	var said redis.Error
	switch {
	case errors.Is(ended, context.Canceled), notSent(err): // says nothing about weir
	case errors.As(err, &said) && !gone: // busy
		c.breaker.succeeded()
	default:
		c.breaker.failed(err, gone)
	}
	switch {
	case ended != nil:
		return ended
	case gone || outcome == notApplied && c.Down():
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	case outcome == notApplied:
		return fmt.Errorf("%w: %w", ErrBusy, err)
	}
	return fmt.Errorf("%w: %w", ErrInDoubt, err)
}

// notSent reports whether a command stayed in this process, because its pipeline or its connection was not free.
func notSent(err error) bool {
	return errors.Is(err, errNotSent) || errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted)
}

// contextError returns why ctx ended, or nil. A deadline that has passed counts even while ctx.Err is still nil,
// because a connection reports the deadline a moment before ctx does.
func contextError(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= 0 {
		return context.DeadlineExceeded
	}
	return nil
}

// dialing reports whether an error occurred before there was a connection.
func dialing(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// keep returns the calls for which f is true, in a new slice.
func keep(calls []*call, f func(*call) bool) (kept []*call) {
	for _, k := range calls {
		if f(k) {
			kept = append(kept, k)
		}
	}
	return kept
}
