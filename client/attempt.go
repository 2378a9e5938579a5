package client

import (
	"context"
	"fmt"

	"github.com/weir-project/weir/engine"
)

// Attempt is an attempt that has begun, for instance to log in, or to enter a code. It counts as a failure unless
// Succeed is called. This holds even if the process dies.
type Attempt struct {
	client *Client
	q      Request
	local  bool // the fallback decided: the local limiter counted the attempt, or nothing did (Open)
}

// Begin begins an attempt under a rule made with Attempts, or under policies whose limits count attempts. q.Also
// names more policies. If the Decision is a denial, the Attempt is nil and must not be made. Otherwise the caller
// delays its response by Decision.RetryAfter. Decision.Remaining is how many more attempts may fail before the
// threshold of the last Step.
//
// While weir is not there, Options.WhenDown decides. Open admits attempts without counting them. A policy
// that extends its penalties does not count attempts that this client denies from memory: see
// Options.DenialKeys.
func (c *Client) Begin(ctx context.Context, q Request) (*Attempt, Decision, error) {
	if r := q.Rule; r != nil && r.err == nil && r.policy == "" && !r.strikes(engine.Attempts) {
		return nil, Decision{}, fmt.Errorf("%w: attempts begin under a rule made with Attempts or a policy, not %s",
			ErrBadRequest, r.name)
	}
	if q.ID == "" {
		q.ID = newID() // it counts once, however often it is sent
	}
	d, err := c.Decide(ctx, q)
	if err != nil || !d.Allowed {
		return nil, d, err
	}
	return &Attempt{client: c, q: q, local: d.Source == FromFallback}, d, nil
}

// Succeed reports that the attempt succeeded. weir forgets the strikes of its key, this attempt included, and ends
// the key's penalty. After an error Succeed may be called again.
func (a *Attempt) Succeed(ctx context.Context) error {
	c, q := a.client, &a.q
	pairs := append([]Pair{{Policy: q.Rule.policy, Key: q.Key}}, q.Also...)
	switch {
	case a.local && c.local != nil:
		c.local.forgive(pairs)
	case a.local: // Open admitted the attempt without counting it
	case q.Rule.policy == "":
		_, err := c.Reset(ctx, q.Key)
		return err
	default:
		_, err := c.Forgive(ctx, pairs...)
		return err
	}
	return nil
}

// Forgive forgets the strikes of policies for their keys, and ends the penalties of these keys. It serves an attempt
// that was begun elsewhere, for instance by a middleware, and succeeded. It returns how many limiters had strikes.
func (c *Client) Forgive(ctx context.Context, pairs ...Pair) (int64, error) {
	args := make([]any, 0, 1+2*len(pairs)+usualOptionArgs)
	args = append(args, "RL.FORGIVE")
	for _, p := range pairs {
		args = append(args, p.Policy, p.Key)
		defer c.denials.forget(p.Key)
	}
	return c.integer(ctx, args...)
}
