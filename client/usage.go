package client

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Usage is the usage of a policy's limit for a key. If the policy has several limits, it is the limit with the
// fewest units left.
type Usage struct {
	Pair
	Used, Limit int64
	Err         error // the usage is not known: for instance, the policy does not exist
}

// Usages returns the usage of policies for keys, in one round trip. It takes nothing, and Stats does not count
// it. An error means that weir was not reached.
func (c *Client) Usages(ctx context.Context, of []Pair) ([]Usage, error) {
	if c.Down() {
		return nil, ErrUnavailable
	}
	if len(of) == 0 {
		return nil, nil
	}
	bounded, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	calls := make([]*call, len(of))
	for i, p := range of {
		calls[i] = &call{args: []any{"RL.CHECK", p.Policy, p.Key, "COST", "0"}, safe: true}
	}
	c.send(bounded, calls)
	out := make([]Usage, len(of))
	for i, k := range calls {
		out[i] = Usage{Pair: of[i]}
		err := c.judge(ctx, k.err)
		switch {
		case errors.Is(err, ErrRefused):
			out[i].Err = err
		case err != nil:
			return nil, err
		default:
			out[i].read(k.cmd.Val())
		}
	}
	return out, nil
}

// read parses the reply of RL.CHECK.
func (u *Usage) read(reply any) {
	list, _ := reply.([]any)
	if len(list) < 5 {
		u.Err = fmt.Errorf("%w: to RL.CHECK: %v", ErrReply, reply)
		return
	}
	remaining, _ := list[1].(int64)
	u.Limit, _ = list[4].(int64)
	u.Used = max(u.Limit-remaining, 0)
}

// Times is a histogram of the durations of decisions, without those of Queue.
type Times struct {
	Count  uint64
	Sum    time.Duration
	Within map[float64]uint64 // by seconds: how many decisions took at most this long
}

// Times returns how long decisions took since the client was made.
func (c *Client) Times() Times {
	s := c.times.Snapshot()
	return Times{Count: uint64(s.Count), Sum: s.Sum, Within: s.Cumulative()}
}

// timed sends the calls of decisions and measures their duration.
func (c *Client) timed(ctx context.Context, calls []*call) {
	begun := time.Now()
	c.send(ctx, calls)
	c.times.Observe(time.Since(begun), int64(len(calls)))
}

// untimed counts a decision that needs no round trip with duration 0, because its duration is not worth reading
// the clock.
func (c *Client) untimed() { c.times.Observe(0, 1) }
