package client

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/weir-project/weir/internal/millis"
)

// PolicyTerms are the terms of a policy.
type PolicyTerms struct {
	Limits     []*Rule       // 1 to 8; a request takes from all of them or from none
	Forget     bool          // also forget the usage; by default it is kept
	Shadow     bool          // decides and counts, and denies nobody
	Disabled   bool          // admits without counting
	RetryAfter time.Duration // the least retry time of a denial
	Reserved   float64       // the part of each limit reserved for requests with High, 0 to 0.999
	Layout     string        // the names of its limiters, like "rl:{policy}:{key}"; empty: none
	// Report changes the limit that decisions report for a bucket: the units that its rate gives in this time. 0
	// reports the burst.
	Report time.Duration
	// Record writes an event when a hold is settled or expires, and when strikes lock a key out.
	Record bool
}

// SetPolicy creates a policy or changes its terms. It returns the policy's version, which grows with every
// change.
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
	if terms.Record {
		args = append(args, "RECORD")
	}
	return c.number(ctx, false, args...)
}

// OverridePolicy gives other limits to the keys that match a pattern, for a time (0: without end). If there are
// no limits, the keys are unlimited.
func (c *Client) OverridePolicy(ctx context.Context, name, pattern string, ttl time.Duration,
	limits ...*Rule) (version int64, err error) {
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

// EndOverride removes an override.
func (c *Client) EndOverride(ctx context.Context, name, pattern string) (version int64, err error) {
	return c.number(ctx, false, "RL.POLICY", "OVERRIDE", name, pattern, "NONE")
}

// DeletePolicy deletes a policy and its usage. It returns whether the policy existed.
func (c *Client) DeletePolicy(ctx context.Context, name string) (bool, error) {
	n, err := c.number(ctx, false, "RL.POLICY", "DEL", name)
	return n == 1, err
}

// EnablePolicy enables a policy, or disables it: a disabled policy admits everything without counting.
func (c *Client) EnablePolicy(ctx context.Context, name string, on bool) (version int64, err error) {
	word := "DISABLE"
	if on {
		word = "ENABLE"
	}
	return c.number(ctx, false, "RL.POLICY", word, name)
}

// ShadowPolicy begins or ends the shadow mode of a policy: it decides and counts, and denies nobody.
func (c *Client) ShadowPolicy(ctx context.Context, name string, on bool) (version int64, err error) {
	word := "OFF"
	if on {
		word = "ON"
	}
	return c.number(ctx, false, "RL.POLICY", "SHADOW", name, word)
}

// Policies returns the names of all policies, in order.
func (c *Client) Policies(ctx context.Context) ([]string, error) {
	list, err := c.list(ctx, "RL.POLICY", "LIST")
	return texts(list), err
}

// limitWords returns a rule in the syntax of a policy's limit.
func limitWords(r *Rule) ([]any, error) {
	if r.err != nil {
		return nil, r.err
	}
	words := append([]any{"LIMIT", strings.TrimPrefix(r.command, "RL.")}, r.words...)
	return append(words, r.notify...), nil
}

// PolicyInfo describes a policy. Limits are in the syntax of commands, like "FIXED 1h 1000".
type PolicyInfo struct {
	Name                       string
	Version                    int64
	Limits                     []string
	Overrides                  []PolicyOverride
	Shadow, Disabled           bool
	RetryAfter                 time.Duration // the least retry time of a denial
	Reserved                   string        // the part reserved for high priority, like "10%"
	Owner                      string        // the owner of its file; empty: none
	Layout                     string        // the names of its limiters, like "rl:{policy}:{key}"; empty: none
	Report                     string        // "burst", or the time of PolicyTerms.Report
	Record                     bool          // ends of holds and lockouts are events
	Admitted, Denied, Shadowed int64         // checks, on the node that answers
	Stale                      time.Duration // the largest age of the data: 0 unless the connection sent READONLY
}

// PolicyOverride gives other limits to the keys that match a pattern.
type PolicyOverride struct {
	Pattern string
	Limits  []string      // none: unlimited
	Left    time.Duration // the remaining time; Never: no end
}

// GetPolicy describes a policy. It returns ErrRefused if the policy does not exist.
func (c *Client) GetPolicy(ctx context.Context, name string) (PolicyInfo, error) {
	m, err := c.fields(ctx, "RL.POLICY", "GET", name)
	if err != nil {
		return PolicyInfo{}, err
	}
	p := PolicyInfo{
		Name: m.text("name"), Version: m.int("version"), Limits: texts(m.list("limits")), Shadow: m.flag("shadow"),
		Disabled:   m.flag("disabled"),
		RetryAfter: m.span("retry_after_ms"), Reserved: m.text("reserved"), Owner: m.text("owner"),
		Layout: m.text("layout"), Report: m.text("report"), Record: m.flag("record"),
		Admitted: m.int("admitted"), Denied: m.int("denied"), Shadowed: m.int("shadowed"), Stale: m.span("stale_ms"),
	}
	for _, o := range m.list("overrides") {
		if three, _ := o.([]any); len(three) == 3 {
			pattern, _ := three[0].(string)
			limits, _ := three[1].([]any)
			ms, _ := three[2].(int64)
			p.Overrides = append(p.Overrides, PolicyOverride{pattern, texts(limits), millis.Wait(ms)})
		}
	}
	return p, nil
}
