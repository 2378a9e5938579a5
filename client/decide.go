package client

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Take asks for one unit.
func (c *Client) Take(ctx context.Context, r *Rule, key string) (Decision, error) {
	return c.Decide(ctx, Request{Rule: r, Key: key})
}

// Peek returns the decision that Take would return, and takes nothing.
func (c *Client) Peek(ctx context.Context, r *Rule, key string) (Decision, error) {
	return c.Decide(ctx, Request{Rule: r, Key: key, Peek: true})
}

// busyPause is the RetryAfter of a request that is refused because weir is busy.
const busyPause = time.Second

// Decide answers a request within Options.Timeout. If weir is busy, the request is denied (FromBusy). If weir is not
// there, Options.WhenDown decides (FromFallback). The errors are ErrBadRule, ErrBadRequest, ErrRefused,
// ErrFull, ErrReply and those of ctx. With an error, the Decision is a denial.
func (c *Client) Decide(ctx context.Context, q Request) (Decision, error) {
	d, known, err := c.beforehand(ctx, &q)
	if known {
		c.untimed()
	}
	if known || err != nil {
		return d, err
	}
	bounded, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	k := &call{args: q.args(), safe: q.repeatable()}
	c.timed(bounded, []*call{k})
	return c.conclude(ctx, &q, k)
}

// DecideAll answers requests in one pipeline within Options.Timeout, each request independently. The error joins the
// errors of single requests. The decisions of the requests with errors are denials.
func (c *Client) DecideAll(ctx context.Context, qs []Request) ([]Decision, error) {
	out := make([]Decision, len(qs))
	var failed []error
	own := make([]Request, len(qs))
	copy(own, qs)
	calls, places := make([]*call, 0, len(qs)), make([]int, 0, len(qs))
	note := func(i int, d Decision, err error) {
		if out[i] = d; err != nil {
			failed = append(failed, fmt.Errorf("request %d: %w", i, err))
		}
	}
	for i := range own {
		d, known, err := c.beforehand(ctx, &own[i])
		if known {
			c.untimed()
		}
		if known || err != nil {
			note(i, d, err)
			continue
		}
		calls, places = append(calls, &call{args: own[i].args(), safe: own[i].repeatable()}), append(places, i)
	}
	if len(calls) > 0 {
		bounded, cancel := context.WithTimeout(ctx, c.options.Timeout)
		defer cancel()
		c.timed(bounded, calls)
	}
	for n, i := range places {
		d, err := c.conclude(ctx, &own[i], calls[n])
		note(i, d, err)
	}
	return out, errors.Join(failed...)
}

// beforehand answers a request that needs no round trip: known is true then. Otherwise it gives the request an ID if
// Options.IDs is set.
func (c *Client) beforehand(ctx context.Context, q *Request) (d Decision, known bool, err error) {
	if err := q.check(); err != nil {
		return d, false, err
	}
	if err := ctx.Err(); err != nil {
		return d, false, err
	}
	if d, known = c.denials.recall(q, time.Now); known {
		c.counts.count(&d)
		return d, true, nil
	}
	if c.Down() {
		return c.fallBack(q), true, nil
	}
	if c.options.IDs && q.ID == "" && !q.Peek {
		q.ID = newID()
	}
	return d, false, nil
}

// conclude converts the outcome of a call to a decision.
func (c *Client) conclude(ctx context.Context, q *Request, k *call) (Decision, error) {
	switch err := c.judge(ctx, k.err); {
	case errors.Is(err, ErrUnavailable), errors.Is(err, ErrInDoubt) && c.Down():
		return c.fallBack(q), nil
	case errors.Is(err, ErrBusy), errors.Is(err, ErrInDoubt):
		c.busy.failed(err)
		d := Decision{RetryAfter: busyPause, Source: FromBusy}
		c.counts.count(&d)
		return d, nil
	case c.options.FallBackOnErrors && (errors.Is(err, ErrRefused) || errors.Is(err, ErrFull)) &&
		!errors.Is(err, ErrIDUsed): // weir knows the limit, and whoever chooses the ID could get past it
		c.refusals.failed(err)
		return c.fallBack(q), nil
	case err != nil:
		return Decision{}, err
	}
	c.refusals.succeeded()
	c.busy.succeeded()
	c.usePolicies(q)
	d, err := decisionOf(q, k.cmd.Val())
	if err != nil {
		return Decision{}, err
	}
	if !d.Allowed {
		c.denials.remember(q, &d, time.Now())
	}
	c.counts.count(&d)
	return d, nil
}

// usePolicies makes the cache fetch the policies of a request that have no rules standing in for them.
func (c *Client) usePolicies(q *Request) {
	if c.policies == nil || q.Rule.policy == "" {
		return
	}
	if len(q.Rule.local) == 0 {
		c.policies.use(q.Rule.policy)
	}
	for _, p := range q.others() {
		c.policies.use(p.Policy)
	}
}

// fallBack decides without weir.
func (c *Client) fallBack(q *Request) (d Decision) {
	switch c.options.WhenDown {
	case Open:
		d = Decision{Allowed: true, Granted: q.cost(), Remaining: q.Rule.max, Limit: q.Rule.max}
	case Closed:
		d = Decision{RetryAfter: maxProbePause, Limit: q.Rule.max}
	case Local:
		d = c.local.decide(q)
	}
	d.Source = FromFallback
	c.counts.count(&d)
	return d
}
