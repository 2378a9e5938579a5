// Package quota describes the decisions of the client for HTTP fields and for people.
package quota

import (
	"context"
	"strings"
	"time"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/httpfields"
)

// Of describes the decision about a request. name and window are those of the limit that the decision describes. If no
// wait helps, Of may ask weir for the reason.
func Of(
	ctx context.Context, c *client.Client, name string, window time.Duration, q *client.Request, d *client.Decision,
) httpfields.Quota {
	quota := httpfields.Quota{
		Name: name, Limit: d.Limit, Remaining: d.Remaining, ResetAfter: d.ResetAfter, Window: window,
		Denied: !d.Allowed, RetryAfter: d.RetryAfter,
	}
	if !d.Allowed && d.RetryAfter == client.Never {
		quota.Never = reason(ctx, c, q, d)
	}
	return quota
}

// reason returns why no wait helps. The reply to a decision does not say it, so weir explains the decision, unless the
// request certainly asks for too much.
func reason(ctx context.Context, c *client.Client, q *client.Request, d *client.Decision) httpfields.Reason {
	most := d.Limit
	if strings.HasPrefix(q.Rule.Name(), "RL.LEAKYBUCKET ") { // one leaves at once, and others wait
		most++
	}
	if !q.Rule.IsPolicy() && d.Limit > 0 && max(q.Cost, 1) > most {
		return httpfields.NeverFits
	}
	if d.Source != client.FromServer {
		return httpfields.NotKnown
	}
	why, err := c.Explain(ctx, *q)
	if err != nil || why.Allowed { // it changed meanwhile
		return httpfields.NotKnown
	}
	return httpfields.ReasonOf(why.Never)
}
