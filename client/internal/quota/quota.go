// Package quota describes the decisions of the client for HTTP fields and for people.
package quota

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/httpfields"
)

// Teller describes decisions. Where no wait helps it may ask weir for the reason, one question at a time. So a flood of
// such requests costs weir few calls more than its decisions, and those that are not explained have no reason.
type Teller struct {
	Client *client.Client
	asking atomic.Bool
}

// Of describes the decision about a request. name and window are those of the limit that the decision describes.
func (t *Teller) Of(
	ctx context.Context, name string, window time.Duration, q *client.Request, d *client.Decision,
) httpfields.Quota {
	quota := httpfields.Quota{
		Name: name, Limit: d.Limit, Remaining: d.Remaining, ResetAfter: d.ResetAfter, Window: window,
		Denied: !d.Allowed, RetryAfter: d.RetryAfter,
	}
	if !d.Allowed && d.RetryAfter == client.Never {
		quota.Never = t.reason(ctx, q, d)
	}
	return quota
}

// reason returns why no wait helps. The reply to a decision does not say it, so weir explains the decision, unless the
// request certainly asks for too much.
func (t *Teller) reason(ctx context.Context, q *client.Request, d *client.Decision) httpfields.Reason {
	most := d.Limit
	if strings.HasPrefix(q.Rule.Name(), "RL.LEAKYBUCKET ") { // one leaves at once, and others wait
		most++
	}
	if !q.Rule.IsPolicy() && d.Limit > 0 && max(q.Cost, 1) > most {
		return httpfields.NeverFits
	}
	if d.Source != client.FromServer || !t.asking.CompareAndSwap(false, true) {
		return httpfields.NotKnown
	}
	defer t.asking.Store(false)
	why, err := t.Client.Explain(ctx, *q)
	if err != nil || why.Allowed { // it changed meanwhile
		return httpfields.NotKnown
	}
	return httpfields.ReasonOf(why.Never)
}
