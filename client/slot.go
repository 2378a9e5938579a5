package client

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-project/weir/engine"
)

// Slot is a lease on one of the units that may be held at the same time.
type Slot struct {
	client *Client
	rule   *Rule
	key    string
	holder string
	local  bool // taken from the local limiter, or granted by Open
}

// Acquire takes a slot under a rule made with Slots. If no slot is free, the slot is nil, and
// Decision.RetryAfter is the time until the first slot expires.
func (c *Client) Acquire(ctx context.Context, r *Rule, key string) (*Slot, Decision, error) {
	if r != nil && r.err == nil && r.kind != engine.Concurrency {
		return nil, Decision{}, fmt.Errorf("%w: slots are taken under a rule made with Slots, not %s", ErrBadRequest, r.name)
	}
	q := Request{Rule: r, Key: key, holder: newID()}
	d, err := c.Decide(ctx, q)
	if err != nil || !d.Allowed {
		return nil, d, err
	}
	return &Slot{client: c, rule: r, key: key, holder: q.holder, local: d.Source == FromFallback}, d, nil
}

// Release gives the slot back. Without it, the slot is free after its ttl. Release returns whether the slot was
// still held.
func (s *Slot) Release(ctx context.Context) (bool, error) {
	if s.local {
		return s.here(engine.OpRelease, 0), nil
	}
	n, err := s.client.integer(ctx, "RL.RELEASE", s.key, s.holder)
	return n == 1, err
}

// Renew holds the slot for ttl from now. False means that the slot is lost: stop the work, or acquire again.
func (s *Slot) Renew(ctx context.Context, ttl time.Duration) (bool, error) {
	if s.local {
		return s.here(engine.OpRenew, ttl), nil
	}
	n, err := s.client.integer(ctx, "RL.RENEW", s.key, s.holder, duration(ttl))
	return n == 1, err
}

// here releases or renews a slot of the local limiter. A slot that Open granted is never lost.
func (s *Slot) here(code engine.OpCode, ttl time.Duration) bool {
	local := s.client.local
	return local == nil ||
		local.do(engine.Op{Code: code, Key: []byte(s.key), Text: []byte(s.holder), TTLNs: int64(ttl)}).Allowed == 1
}
