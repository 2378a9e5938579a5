package client

import (
	"context"
	"fmt"

	"github.com/weir-project/weir/engine"
)

// Attempt is one that has begun: a login, a code, a card. It counts as a failure, also when
// this process dies, unless it succeeds.
type Attempt struct {
	client *Client
	q      Request
	local  bool // counted by the limiter of the process, or by nobody
}

// Begin begins an attempt under a rule made with Attempts, or under policies (q.Also names
// more) that have such limits. The attempt is nil when it must not be made: the Decision is a
// denial. Otherwise hold its response for Decision.RetryAfter. Decision.Remaining is how many
// more may fail before the last step.
//
// While weir is not reached Options.WhenDown decides; Open lets attempts through uncounted. A
// policy that extends its penalties does not hear of what this client denies from memory: see
// Options.DenialKeys.
func (c *Client) Begin(ctx context.Context, q Request) (*Attempt, Decision, error) {
	if r := q.Rule; r != nil && r.err == nil && r.policy == "" && !r.strikes(engine.Attempts) {
		return nil, Decision{}, fmt.Errorf("%w: attempts begin under a rule made with Attempts or a policy, not %s", ErrBadRequest, r.name)
	}
	if q.ID == "" {
		q.ID = newID() // so that it counts once, however often it has to be sent
	}
	d, err := c.Decide(ctx, q)
	if err != nil || !d.Allowed {
		return nil, d, err
	}
	return &Attempt{client: c, q: q, local: d.Source == FromFallback}, d, nil
}

// Succeed says that the attempt succeeded: the failures before it, and the penalty that it
// may have begun, are forgotten. After an error it may be called again.
func (a *Attempt) Succeed(ctx context.Context) error {
	c, q := a.client, &a.q
	pairs := append([]Pair{{Policy: q.Rule.policy, Key: q.Key}}, q.Also...)
	switch {
	case a.local && c.local != nil:
		c.local.forgive(pairs)
	case a.local: // nobody counted it
	case q.Rule.policy == "":
		_, err := c.Reset(ctx, q.Key)
		return err
	default:
		_, err := c.Forgive(ctx, pairs...)
		return err
	}
	return nil
}

// Forgive forgets the strikes of policies for their keys, and ends their penalties: an attempt
// that was begun elsewhere, by a middleware for instance, succeeded. It returns how many
// limiters had strikes.
func (c *Client) Forgive(ctx context.Context, pairs ...Pair) (int64, error) {
	args := make([]any, 0, 1+2*len(pairs)+usualOptionArgs)
	args = append(args, "RL.FORGIVE")
	for _, p := range pairs {
		args = append(args, p.Policy, p.Key)
		defer c.denials.forget(p.Key)
	}
	return c.integer(ctx, args...)
}
