package client

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// Stats has counters since the client was made.
type Stats struct {
	Admitted, Denied int64 // decisions of all sources
	FromMemory       int64 // denials from memory, without a round trip
	FromFallback     int64 // decisions of the fallback
	FromBusy         int64 // denials because weir was busy
	Refused          int64 // commands that weir answered with an error
	Retries          int64 // commands that were resent
	Switches         int64 // switches to the fallback
	Probes           int64 // probes whether weir is reachable again
	Policies         int64 // policies whose limits are cached for outages
	Down             bool  // weir is not reached now
}

type counters struct {
	admitted, denied, fromMemory, fromFallback, fromBusy, refused, retries, switches, probes, policies atomic.Int64
}

func (c *counters) count(d *Decision) {
	if d.Allowed {
		c.admitted.Add(1)
	} else {
		c.denied.Add(1)
	}
	switch d.Source {
	case FromMemory:
		c.fromMemory.Add(1)
	case FromFallback:
		c.fromFallback.Add(1)
	case FromBusy:
		c.fromBusy.Add(1)
	}
}

// Stats returns the counters of the client, for metrics.
func (c *Client) Stats() Stats {
	n := &c.counts
	return Stats{
		Admitted: n.admitted.Load(), Denied: n.denied.Load(), FromMemory: n.fromMemory.Load(),
		FromFallback: n.fromFallback.Load(), FromBusy: n.fromBusy.Load(),
		Refused: n.refused.Load(), Retries: n.retries.Load(), Switches: n.switches.Load(), Probes: n.probes.Load(),
		Policies: n.policies.Load(),
		Down:     c.Down(),
	}
}

// Usage is the usage of a policy's limit for a key. If the policy has several limits, it is the limit with the
// fewest units left.
type Usage struct {
	Pair
	Used, Limit int64
	Err         error // the usage is not known: for instance, the policy does not exist
}

// Usages returns the usage of policies for keys, in one round trip. It takes nothing, and Stats does not count
// it. It returns an error if weir was not reached or ctx ended. Usage.Err has the errors of single pairs.
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
