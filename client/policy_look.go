package client

import (
	"context"
	"time"
)

// PolicyInfo describes a policy. Limits are as one types them, like "FIXED 1h 1000".
type PolicyInfo struct {
	Name                       string
	Version                    int64
	Limits                     []string
	Overrides                  []PolicyOverride
	Shadow, Disabled           bool
	RetryAfter                 time.Duration // the least that a denial says
	Reserved                   string        // the part kept for high priority, like "10%"
	Owner                      string        // whose file it comes from; empty: nobody's
	Layout                     string        // the names of its limiters, like "rl:{policy}:{key}"; empty: none
	Report                     string        // "burst", or the time in which a rate gives what decisions tell as the limit
	Admitted, Denied, Shadowed int64         // checks, on the node that answers
	Stale                      time.Duration // how old this may be: 0 unless the connection sent READONLY
}

// PolicyOverride is other limits for the keys that match a pattern.
type PolicyOverride struct {
	Pattern string
	Limits  []string      // none: unlimited
	Left    time.Duration // how much longer, or Never: for good
}

// GetPolicy describes a policy; ErrRefused: there is none of that name.
func (c *Client) GetPolicy(ctx context.Context, name string) (PolicyInfo, error) {
	m, err := c.fields(ctx, "RL.POLICY", "GET", name)
	if err != nil {
		return PolicyInfo{}, err
	}
	p := PolicyInfo{
		Name: m.text("name"), Version: m.int("version"), Limits: texts(m.list("limits")), Shadow: m.flag("shadow"), Disabled: m.flag("disabled"),
		RetryAfter: m.span("retry_after_ms"), Reserved: m.text("reserved"), Owner: m.text("owner"), Layout: m.text("layout"), Report: m.text("report"),
		Admitted: m.int("admitted"), Denied: m.int("denied"), Shadowed: m.int("shadowed"), Stale: m.span("stale_ms"),
	}
	for _, o := range m.list("overrides") {
		if three, _ := o.([]any); len(three) == 3 {
			pattern, _ := three[0].(string)
			limits, _ := three[1].([]any)
			ms, _ := three[2].(int64)
			p.Overrides = append(p.Overrides, PolicyOverride{pattern, texts(limits), millis(ms)})
		}
	}
	return p, nil
}
