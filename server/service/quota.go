package service

import (
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/httpfields"
)

// QuotaOf converts a decision for HTTP fields.
func QuotaOf(policy string, d *engine.Decision) httpfields.Quota {
	ms := func(n int64) time.Duration {
		if n < 0 {
			return -1
		}
		return time.Duration(n) * time.Millisecond
	}
	return httpfields.Quota{
		Name: policy, Limit: d.Limit, Remaining: d.Remaining, ResetAfter: ms(d.ResetMs),
		Denied: d.Allowed == 0, RetryAfter: ms(d.RetryMs),
	}
}
