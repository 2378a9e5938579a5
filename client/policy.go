package client

import (
	"context"
	"strconv"
	"strings"
	"time"
)

// PolicyTerms are what a policy is made of.
type PolicyTerms struct {
	Limits     []*Rule       // 1 to 8: all of them admit, or nothing is taken
	Forget     bool          // what was used under the terms before, which is kept otherwise
	Shadow     bool          // decides and counts, and denies nothing
	Disabled   bool          // admits without counting
	RetryAfter time.Duration // a denial says to wait at least this
	Reserved   float64       // the part that only requests with High may take, 0 to 0.999
	Layout     string        // the names of its limiters, like "rl:{policy}:{key}"; empty: none
	// Report makes decisions tell as the limit of a bucket what its rate gives in this time; 0:
	// the burst.
	Report time.Duration
}

// SetPolicy makes a policy, or gives it other terms; what was used stays used. It returns
// the policy's version, which grows with every change.
func (c *Client) SetPolicy(ctx context.Context, name string, terms PolicyTerms) (version int64, err error) {
	args := []any{"RL.POLICY", "SET", name}
	for _, r := range terms.Limits {
		words, err := limitWords(r)
		if err != nil {
			return 0, err
		}
		args = append(args, words...)
	}
	if terms.Forget {
		args = append(args, "RESET")
	}
	if terms.Shadow {
		args = append(args, "SHADOW")
	}
	if terms.Disabled {
		args = append(args, "DISABLED")
	}
	if terms.RetryAfter > 0 {
		args = append(args, "RETRYAFTER", duration(terms.RetryAfter))
	}
	if terms.Reserved > 0 {
		args = append(args, "RESERVED", strconv.FormatFloat(terms.Reserved*100, 'f', 1, 64)+"%")
	}
	if terms.Layout != "" {
		args = append(args, "LAYOUT", terms.Layout)
	}
	if terms.Report > 0 {
		args = append(args, "REPORT", duration(terms.Report))
	}
	return c.number(ctx, false, args...)
}

// OverridePolicy gives the keys that match a pattern other limits, for a time (0: for
// good). Without limits those keys have none.
func (c *Client) OverridePolicy(ctx context.Context, name, pattern string, ttl time.Duration, limits ...*Rule) (version int64, err error) {
	args := []any{"RL.POLICY", "OVERRIDE", name, pattern}
	for _, r := range limits {
		words, err := limitWords(r)
		if err != nil {
			return 0, err
		}
		args = append(args, words...)
	}
	if len(limits) == 0 {
		args = append(args, "UNLIMITED")
	}
	if ttl > 0 {
		args = append(args, "TTL", duration(ttl))
	}
	return c.number(ctx, false, args...)
}

// EndOverride takes an override back.
func (c *Client) EndOverride(ctx context.Context, name, pattern string) (version int64, err error) {
	return c.number(ctx, false, "RL.POLICY", "OVERRIDE", name, pattern, "NONE")
}

// DeletePolicy deletes a policy and forgets its usage. It says whether there was one.
func (c *Client) DeletePolicy(ctx context.Context, name string) (bool, error) {
	n, err := c.number(ctx, false, "RL.POLICY", "DEL", name)
	return n == 1, err
}

// EnablePolicy lets a policy decide, or admit everything without counting.
func (c *Client) EnablePolicy(ctx context.Context, name string, on bool) (version int64, err error) {
	word := "DISABLE"
	if on {
		word = "ENABLE"
	}
	return c.number(ctx, false, "RL.POLICY", word, name)
}

// ShadowPolicy lets a policy decide and count but deny nothing, or ends that.
func (c *Client) ShadowPolicy(ctx context.Context, name string, on bool) (version int64, err error) {
	word := "OFF"
	if on {
		word = "ON"
	}
	return c.number(ctx, false, "RL.POLICY", "SHADOW", name, word)
}

// Policies are the names of all policies, in order.
func (c *Client) Policies(ctx context.Context) ([]string, error) {
	list, err := c.list(ctx, "RL.POLICY", "LIST")
	return texts(list), err
}

// limitWords is a rule as a limit of a policy.
func limitWords(r *Rule) ([]any, error) {
	if r.err != nil {
		return nil, r.err
	}
	return append([]any{"LIMIT", strings.TrimPrefix(r.command, "RL.")}, r.words...), nil
}
