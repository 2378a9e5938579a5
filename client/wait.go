package client

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/weir-project/weir/engine"
)

const (
	// longestQueue bounds how far ahead Wait reserves units if its context has no deadline. The units that a killed
	// caller had reserved stay unused, and later callers wait at most this long for nothing.
	longestQueue = time.Minute
	// waitJitter is the divisor of the random part that is added to a wait: up to 1/waitJitter of the wait. Callers
	// that wait for the same window must not all return at its first instant.
	waitJitter = 8
)

// Wait returns when all requests are admitted and their delay has passed. To send thirty messages a second, and
// one message a second to each chat:
//
//	err := limits.Wait(ctx, client.Request{Rule: all, Key: "bot"}, client.Request{Rule: perChat, Key: "chat:42"})
//
// Under token and leaky buckets callers are served in the order of their arrival. If the wait would outlast
// ctx, Wait returns ErrDenied at once. Other errors are those of Decide. With an error nothing is taken, except
// by policies, which cannot give units back. While weir is not reached and the fallback denies, Wait keeps
// waiting. No request may have an ID.
func (c *Client) Wait(ctx context.Context, requests ...Request) error {
	qs := append([]Request(nil), requests...)
	for i := range qs {
		if qs[i].ID != "" { // a repeated ID would return units that were given back
			return fmt.Errorf("%w: a request that waits must not have an ID, because it is sent several "+
				"times", ErrBadRequest)
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
			err = fmt.Errorf("%w: the cost is above the limit", ErrDenied)
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
			err = pause(ctx, sum(v.pause, rand.N(v.pause/waitJitter+time.Millisecond)))
		}
		if err != nil {
			return err
		}
	}
}

// reserveUntil sets the MaxWait of all token buckets to the time that ctx lasts, at most longestQueue without a
// deadline. Without MaxWait, weir would deny a request and reserve no units for it.
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

// verdict combines the decisions about all requests of a Wait.
type verdict struct {
	admitted bool          // all requests are admitted
	never    bool          // one request can never be admitted
	pause    time.Duration // if admitted: the delay; else the pause before the next try
	atLeast  time.Duration // a lower bound of the wait until all are admitted
}

func verdictOf(qs []Request, ds []Decision) verdict {
	v := verdict{admitted: true}
	var hold time.Duration
	for i := range ds {
		switch d := &ds[i]; {
		case d.Allowed:
			hold = max(hold, d.RetryAfter)
		case d.Source == FromFallback || d.Source == FromBusy: // weir may decide again at any moment
			v.admitted, v.pause = false, max(v.pause, maxProbePause)
		case d.RetryAfter == Never:
			return verdict{never: true}
		default: // it fits after RetryAfter, and is delayed by up to MaxWait then
			v.admitted = false
			v.pause, v.atLeast = max(v.pause, d.RetryAfter), max(v.atLeast, sum(d.RetryAfter, qs[i].MaxWait))
		}
	}
	if v.admitted {
		v.pause = hold
	}
	v.atLeast = max(v.atLeast, hold)
	return v
}

// sum adds two waits. The longest duration stands for a longer sum.
func sum(a, b time.Duration) time.Duration {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// outlasts reports whether ctx lasts at least as long as a wait.
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

// undo gives back the units that some requests took while others were denied. It ignores the end of ctx, which
// is one of the reasons to call it.
func (c *Client) undo(ctx context.Context, qs []Request, ds []Decision) {
	for i := range ds {
		if ds[i].Granted > 0 {
			c.giveBack(context.WithoutCancel(ctx), &qs[i], ds[i].Granted, ds[i].Source)
		}
	}
}

// giveBack gives units back to the source that granted them, except units of policies, which cannot be given back.
// If a refund fails, the units stay used: too few units are safe, too many are not.
func (c *Client) giveBack(ctx context.Context, q *Request, n int64, from Source) {
	switch {
	case from == FromFallback && c.local != nil:
		c.local.refund(q, n)
	case from == FromServer && q.Rule.policy == "":
		_, _ = c.Refund(ctx, q.Key, n)
	}
}
