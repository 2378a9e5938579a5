package client

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Usage is what is used of the limit of a policy for a key; with several limits, of the one with the least left.
type Usage struct {
	Pair
	Used, Limit int64
	Err         error // nothing is known of this one: there is no such policy, for instance
}

// Usages asks weir what is used, in one round trip. It takes nothing, and Stats does not count it. The error is
// about all of them: weir was not reached.
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

// read reads the reply of RL.CHECK.
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

// Times is how long decisions took their callers, but for those of Queue.
type Times struct {
	Count  uint64
	Sum    time.Duration
	Within map[float64]uint64 // how many took no longer than so many seconds
}

// Times returns how long decisions took since the client was made.
func (c *Client) Times() Times {
	s := c.times.Snapshot()
	return Times{Count: uint64(s.Count), Sum: s.Sum, Within: s.Cumulative()}
}

// timed sends the calls of decisions.
func (c *Client) timed(ctx context.Context, calls []*call) {
	begun := time.Now()
	c.send(ctx, calls)
	c.times.Observe(time.Since(begun), int64(len(calls)))
}

// untimed is the time of a decision that needs no round trip, which is not worth reading a clock.
func (c *Client) untimed() { c.times.Observe(0, 1) }
