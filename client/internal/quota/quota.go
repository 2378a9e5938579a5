// Package quota describes the decisions of the client for HTTP fields and for people.
package quota

import (
	"strings"
	"time"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/httpfields"
)

// Of describes the decision about a request. name and window are those of the limit that the decision describes.
func Of(name string, window time.Duration, q *client.Request, d *client.Decision) httpfields.Quota {
	quota := httpfields.Quota{
		Name: name, Limit: d.Limit, Remaining: d.Remaining, ResetAfter: d.ResetAfter, Window: window,
		Denied: !d.Allowed, RetryAfter: d.RetryAfter,
	}
	if !d.Allowed && d.RetryAfter == client.Never {
		quota.Never = reason(q, d)
	}
	return quota
}

// reason returns why no wait helps. The reply of weir does not say it. So the reason is not known if the limit may have
// no end, or may be a part that others have reserved.
func reason(q *client.Request, d *client.Decision) httpfields.Reason {
	most := d.Limit
	if strings.HasPrefix(q.Rule.Name(), "RL.LEAKYBUCKET ") { // one leaves at once, and others wait
		most++
	}
	switch {
	case d.Limit > 0 && max(q.Cost, 1) > most:
		return httpfields.NeverFits
	case !q.Rule.IsPolicy() && q.Rule.Window() > 0: // its units return by themselves
		return httpfields.Blocked
	case !q.Rule.IsPolicy() && d.Remaining > 0: // nothing remains for a client that is blocked
		return httpfields.UsedUp
	}
	return httpfields.NotKnown
}
