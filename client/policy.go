package client

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// PolicyTerms are what a policy is made of.
type PolicyTerms struct {
	Limits     []*Rule       // 1 to 8: all of them admit, or nothing is taken
	Shadow     bool          // decides and counts, and denies nothing
	Disabled   bool          // admits without counting
	RetryAfter time.Duration // a denial says to wait at least this
	Reserved   float64       // the part that only requests with High may take, 0 to 0.999
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
	return c.policy(ctx, args...)
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
	return c.policy(ctx, args...)
}

// EndOverride takes an override back.
func (c *Client) EndOverride(ctx context.Context, name, pattern string) (version int64, err error) {
	return c.policy(ctx, "RL.POLICY", "OVERRIDE", name, pattern, "NONE")
}

// DeletePolicy deletes a policy and forgets its usage. It says whether there was one.
func (c *Client) DeletePolicy(ctx context.Context, name string) (bool, error) {
	n, err := c.policy(ctx, "RL.POLICY", "DEL", name)
	return n == 1, err
}

// EnablePolicy lets a policy decide, or admit everything without counting.
func (c *Client) EnablePolicy(ctx context.Context, name string, on bool) (version int64, err error) {
	word := "DISABLE"
	if on {
		word = "ENABLE"
	}
	return c.policy(ctx, "RL.POLICY", word, name)
}

// ShadowPolicy lets a policy decide and count but deny nothing, or ends that.
func (c *Client) ShadowPolicy(ctx context.Context, name string, on bool) (version int64, err error) {
	word := "OFF"
	if on {
		word = "ON"
	}
	return c.policy(ctx, "RL.POLICY", "SHADOW", name, word)
}

// Policies are the names of all policies, in order.
func (c *Client) Policies(ctx context.Context) ([]string, error) {
	reply, err := c.do(ctx, false, "RL.POLICY", "LIST")
	if err != nil {
		return nil, err
	}
	list, ok := reply.([]any)
	if !ok {
		return nil, fmt.Errorf("%w: to RL.POLICY LIST: %v", ErrReply, reply)
	}
	names := make([]string, len(list))
	for i := range list {
		names[i], _ = list[i].(string)
	}
	return names, nil
}

// policy carries out a change. It may be sent twice: the second changes nothing.
func (c *Client) policy(ctx context.Context, args ...any) (int64, error) {
	reply, err := c.do(ctx, false, args...)
	if err != nil {
		return 0, err
	}
	n, ok := reply.(int64)
	if !ok {
		return 0, fmt.Errorf("%w: to RL.POLICY: %v", ErrReply, reply)
	}
	return n, nil
}

// limitWords is a rule as a limit of a policy.
func limitWords(r *Rule) ([]any, error) {
	if r.err != nil {
		return nil, r.err
	}
	words := []any{"LIMIT", strings.TrimPrefix(r.command, "RL.")}
	for _, w := range r.words {
		words = append(words, w)
	}
	return words, nil
}
