package detector

import (
	"context"
	"errors"
	"time"
)

// ErrNoDetector is the error of Network.Ping for a host that lives and whose weir has no detector. It is never accused.
var ErrNoDetector = errors.New("the host has no failure detector")

const (
	// graceLimits is how long a silence may last, in limits, before it counts as unconfirmed. A witness that heard the
	// host a little later confirms in less.
	graceLimits = 2
	// askPause divides the limit: an unconfirmed question is repeated so often at first, and once in each limit later.
	askPause = 5
)

// silence is a time in which a host is not heard.
type silence struct {
	since   time.Time // the host was heard last
	asking  bool      // a question is under way
	askNext time.Time
	counted bool // as confirmed or unconfirmed
	plans   map[int]*plan
}

// answered records the result of a ping. The caller holds mu.
func (d *Detector) answered(h *host, err error) {
	switch {
	case err == nil:
		h.heard = time.Now()
		d.end(h)
	case errors.Is(err, ErrNoDetector):
		h.heard = time.Time{}
		d.end(h)
	}
}

// end ends the silence of a host. The caller holds mu.
func (d *Detector) end(h *host) {
	if s := h.silence; s != nil {
		d.countUnconfirmed(s)
		h.silence = nil
	}
}

func (d *Detector) countUnconfirmed(s *silence) {
	if !s.counted {
		s.counted = true
		d.Unconfirmed.Add(1)
	}
}

// left returns how long a host must still be silent until the limit. ok is false if the host was never heard. The
// caller holds mu.
func (d *Detector) left(h *host, now time.Time) (left time.Duration, ok bool) {
	return d.Limit - now.Sub(h.heard), !h.heard.IsZero()
}

// judge acts on a host that is silent. The caller holds mu.
func (d *Detector) judge(ctx context.Context, h *host, now time.Time) {
	if left, ok := d.left(h, now); !ok || left > 0 {
		return
	}
	if h.silence == nil {
		h.silence = &silence{since: h.heard, plans: map[int]*plan{}}
	}
	s := h.silence
	if now.Sub(s.since) > graceLimits*d.Limit {
		d.countUnconfirmed(s)
	}
	if !s.asking && !now.Before(s.askNext) {
		s.asking = true
		d.tasks.Go(func() { d.confirm(ctx, h, s) })
	}
	d.carryOut(ctx, h, s, now)
}

// askAgain returns the pause before the next question about a silence.
func (d *Detector) askAgain(s *silence, now time.Time) time.Duration {
	if now.Sub(s.since) > graceLimits*d.Limit {
		return d.Limit
	}
	return d.Limit / askPause
}
