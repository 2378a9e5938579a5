package client

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/weir-project/weir/engine"
)

const (
	// longestQueue bounds how far ahead Wait reserves when its context has no deadline:
	// a caller that is killed leaves a gap no longer.
	longestQueue = time.Minute
	// waitJitter is the most that is added to a wait, as a part of it: callers that wait
	// for the same window must not all come at its first instant.
	waitJitter = 8
)

// Wait returns when all requests are admitted, and it is their time: to send thirty
// messages a second and to one chat one a second,
//
//	err := limits.Wait(ctx, client.Request{Rule: all, Key: "bot"}, client.Request{Rule: perChat, Key: "chat:42"})
//
// Under token and leaky buckets callers queue in the order in which they came. An error
// is ErrDenied where the wait would outlast ctx, at once and not when it ends; otherwise
// those of Decide. Nothing is taken then, but by policies, which cannot give back. While
// weir is not reached and the fallback denies, Wait waits on. No request may have an ID.
func (c *Client) Wait(ctx context.Context, requests ...Request) error {
	qs := append([]Request(nil), requests...)
	for i := range qs {
		if qs[i].ID != "" { // it would answer for units that were given back
			return fmt.Errorf("%w: a request that is waited for has no ID: it is asked several times", ErrBadRequest)
		}
	}
	for {
		reserveUntil(ctx, qs)
		ds, err := c.DecideAll(ctx, qs)
		if err != nil {
			c.undo(ctx, qs, ds)
			return err
		}
		v := verdictOf(qs, ds)
		switch {
		case v.never:
			err = fmt.Errorf("%w: more is asked for than the limit ever has", ErrDenied)
		case !outlasts(ctx, v.atLeast):
			err = fmt.Errorf("%w: the wait of at least %v outlasts the context", ErrDenied, v.atLeast)
		case v.admitted:
			err = pause(ctx, v.pause)
		}
		if v.admitted && err == nil {
			return nil
		}
		c.undo(ctx, qs, ds)
		if err == nil {
			err = pause(ctx, v.pause+rand.N(v.pause/waitJitter+time.Millisecond))
		}
		if err != nil {
			return err
		}
	}
}

// reserveUntil lets token buckets be reserved as far ahead as ctx lasts, all of them
// together: of a request that may not wait nothing would be learned but its denial.
func reserveUntil(ctx context.Context, qs []Request) {
	ahead := longestQueue
	if deadline, ok := ctx.Deadline(); ok {
		ahead = min(max(time.Until(deadline), 0), time.Duration(engine.MaxWindowNs))
	}
	for i := range qs {
		if r := qs[i].Rule; r != nil && r.kind == engine.TokenBucket && !qs[i].Partial {
			qs[i].MaxWait = ahead.Truncate(time.Millisecond)
		}
	}
}

// verdict is what the answers to all requests of a Wait come to.
type verdict struct {
	admitted bool          // all of them
	never    bool          // one of them never is
	pause    time.Duration // admitted: before going on; else: before asking again
	atLeast  time.Duration // the wait until all can be admitted is no shorter
}

func verdictOf(qs []Request, ds []Decision) verdict {
	v := verdict{admitted: true}
	var hold time.Duration
	for i := range ds {
		switch d := &ds[i]; {
		case d.Allowed:
			hold = max(hold, d.RetryAfter)
		case d.Source == FromFallback: // weir may be back, and admit it, at any moment
			v.admitted, v.pause = false, max(v.pause, probeMost)
		case d.RetryAfter == Never:
			return verdict{never: true}
		default: // it will fit when RetryAfter is over, and leave up to MaxWait later
			v.admitted = false
			v.pause, v.atLeast = max(v.pause, d.RetryAfter), max(v.atLeast, d.RetryAfter+qs[i].MaxWait)
		}
	}
	if v.admitted {
		v.pause = hold
	}
	v.atLeast = max(v.atLeast, hold)
	return v
}

// outlasts says whether ctx lasts longer than a wait.
func outlasts(ctx context.Context, wait time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return !ok || wait <= time.Until(deadline)
}

func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// undo gives back what some of the requests took while others were denied. It goes on
// when ctx has ended, for that is a reason to come here.
func (c *Client) undo(ctx context.Context, qs []Request, ds []Decision) {
	for i := range ds {
		if ds[i].Granted > 0 {
			c.giveBack(context.WithoutCancel(ctx), &qs[i], ds[i].Granted, ds[i].Source)
		}
	}
}

// giveBack gives units back to whoever granted them. Where that fails they stay spent:
// too few is safe, too many is not.
func (c *Client) giveBack(ctx context.Context, q *Request, n int64, from Source) {
	switch {
	case from == FromFallback && c.local != nil:
		c.local.refund(q, n)
	case from == FromServer && q.Rule.policy == "":
		_, _ = c.Refund(ctx, q.Key, n)
	}
}
