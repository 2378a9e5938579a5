package client

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-project/weir/engine"
)

// Hold is units that are held under a policy for a request whose cost is not known yet:
// the tokens of a model, the bytes of a download.
type Hold struct {
	client *Client
	id     string
	key    string // whose denials are forgotten when units come back; empty: not known
	local  bool   // made by the limiter of the process, or by nobody
}

// Reserve holds q.Cost units under a policy (and those of q.Also) until Commit or Cancel;
// after ttl they go back by themselves. q.ID names the hold; it is made up unless given.
// The hold is nil when there is none: the Decision is a denial.
func (c *Client) Reserve(ctx context.Context, q Request, ttl time.Duration) (*Hold, Decision, error) {
	if ttl <= 0 || int64(ttl) > engine.MaxWindowNs {
		return nil, Decision{}, fmt.Errorf("%w: the ttl of a hold must be above 0 and at most 366 days, not %v", ErrBadRequest, ttl)
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

// Hold is a hold that was made elsewhere, for instance before this process was started.
func (c *Client) Hold(id string) *Hold { return &Hold{client: c, id: id} }

// ID names the hold to Client.Hold.
func (h *Hold) ID() string { return h.id }

// Commit settles the hold: what was really used. Less than was held is given back, more is
// taken even where there is no room for it. It returns the units left of the limit with the
// least left, or -1 where nothing is known of it. Committing twice is committing once.
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

// Cancel calls the hold off: nothing was used. It says whether the hold is cancelled;
// false: it has ended or was settled.
func (h *Hold) Cancel(ctx context.Context) (bool, error) {
	if h.local {
		d, ok := h.here(engine.OpCancel, 0)
		return !ok || d.Allowed == 1, nil
	}
	defer h.client.denials.forget(h.key)
	n, err := h.client.number(ctx, true, "RL.CANCEL", h.id)
	return n == 1, err
}

// here settles a hold of the process. Of one that Open gave nobody knows.
func (h *Hold) here(code engine.OpCode, actual int64) (d engine.Decision, ok bool) {
	if h.client.local == nil {
		return d, false
	}
	d = h.client.local.do(engine.Op{Code: code, Key: []byte(h.id), Cost: actual})
	return d, d.Status == engine.OK
}
