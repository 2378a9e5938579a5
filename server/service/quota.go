package service

import (
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/httpfields"
	"github.com/weir-project/weir/internal/millis"
	"github.com/weir-project/weir/limits"
)

// QuotaOf converts the decision about an OpTake or an OpCheck of one pair for HTTP fields. name is the name of the
// limit.
func (s *Service) QuotaOf(name string, op *engine.Op, d *engine.Decision) httpfields.Quota {
	q := httpfields.Quota{
		Name: name, Limit: d.Limit, Remaining: d.Remaining, ResetAfter: millis.Wait(d.ResetMs),
		Denied: d.Allowed == 0, RetryAfter: millis.Wait(d.RetryMs),
	}
	fits := false
	switch op.Code {
	case engine.OpTake:
		q.Window, fits = limits.Window(&op.Limit), op.Cost <= op.Limit.Max
	default:
		p := s.Here.Policies().Get(op.Text)
		if p == nil { // removed meanwhile
			return q
		}
		q.Window, fits = s.windowOf(p, op, d), p.CanFit(s.Limiter.Now(), op)
	}
	switch {
	case !q.Denied || d.RetryMs >= 0:
	case !fits:
		q.Never = httpfields.NeverFits
	case d.Part == engine.NoPart:
		q.Never = httpfields.Blocked
	default:
		q.Never = httpfields.UsedUp
	}
	return q
}

// windowOf returns the time in which the limit that a check reports becomes available again, or 0 if it never does. The
// answer to a check of a blocked key reports the first limit.
func (s *Service) windowOf(p *engine.Policy, op *engine.Op, d *engine.Decision) time.Duration {
	inForce := p.LimitsFor(s.Limiter.Now(), op.Key)
	switch {
	case int(d.Part) < len(inForce):
		inForce = inForce[d.Part:]
	case d.Allowed > 0: // no limit applies
		return 0
	default:
		inForce = p.Limits
	}
	l := &inForce[0].Limit
	if bucket := l.Algorithm == engine.TokenBucket || l.Algorithm == engine.LeakyBucket; bucket && p.ReportNs > 0 {
		return time.Duration(p.ReportNs)
	}
	return limits.Window(l)
}
