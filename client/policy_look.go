package client

import (
	"context"
	"time"
)

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
