package client

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-project/weir/engine"
)

// Hold is units that are held under a policy for a request whose cost is not known yet: the tokens of a model,
// the bytes of a download.
type Hold struct {
	client *Client
	id     string
	key    string // the client forgets the denials of this key when the hold ends; empty: not known
	local  bool   // made by the local limiter, or by Open
}

// Reserve holds q.Cost units under a policy and under the policies of q.Also, until Commit or Cancel. weir gives the
// units back if neither is called within ttl. q.ID names the hold; Reserve generates an ID if it is empty. If the
// Decision is a denial, the hold is nil.
func (c *Client) Reserve(ctx context.Context, q Request, ttl time.Duration) (*Hold, Decision, error) {
	if ttl <= 0 || int64(ttl) > engine.MaxWindowNs {
		return nil, Decision{}, fmt.Errorf("%w: the ttl of a hold must be above 0 and at most 366 days, not %v",
			ErrBadRequest, ttl)
	}
	if q.hold = ttl; q.ID == "" {
		q.ID = newID()
	}
	d, err := c.Decide(ctx, q)
	if err != nil || !d.Allowed {
		return nil, d, err
	}
	return &Hold{client: c, id: q.ID, key: q.Key, local: d.Source == FromFallback}, d, nil
}

// Hold returns a hold that was made elsewhere, for instance before this process started.
func (c *Client) Hold(id string) *Hold { return &Hold{client: c, id: id} }

// ID returns the id of the hold for Client.Hold.
func (h *Hold) ID() string { return h.id }

// Commit completes the hold with its true cost. If the cost is lower than the held units, weir gives the difference
// back. If the cost is higher, weir takes the difference as well, even if the limits do not have it.
// Commit returns the units left of the limit with the fewest left, or -1 if that is not known. A repeated Commit has
// no further effect.
func (h *Hold) Commit(ctx context.Context, actual int64) (left int64, err error) {
	if actual < 0 || actual > engine.MaxUnits {
		return 0, fmt.Errorf("%w: what was used must be 0 to 2^53, not %d", ErrBadRequest, actual)
	}
	if !h.local {
		defer h.client.denials.forget(h.key)
		return h.client.number(ctx, true, "RL.COMMIT", h.id, actual)
	}
	if d, ok := h.here(engine.OpCommit, actual); ok {
		return d.Remaining, nil
	}
	return -1, nil
}

// Cancel cancels the hold: nothing was used. It returns whether the hold is cancelled; false means that it has
// ended or was committed.
func (h *Hold) Cancel(ctx context.Context) (bool, error) {
	if h.local {
		d, ok := h.here(engine.OpCancel, 0)
		return !ok || d.Allowed == 1, nil
	}
	defer h.client.denials.forget(h.key)
	n, err := h.client.number(ctx, true, "RL.CANCEL", h.id)
	return n == 1, err
}

// here completes or cancels a hold of the local limiter. ok is false for a hold that Open granted, because no limiter
// counted it.
func (h *Hold) here(code engine.OpCode, actual int64) (d engine.Decision, ok bool) {
	if h.client.local == nil {
		return d, false
	}
	d = h.client.local.do(engine.Op{Code: code, Key: []byte(h.id), Cost: actual})
	return d, d.Status == engine.OK
}

// Slot is one of the places of a rule made with Slots. It is held until Release, or until its ttl has passed.
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
		return nil, Decision{},
			fmt.Errorf("%w: slots are taken under a rule made with Slots, not %s", ErrBadRequest, r.name)
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
