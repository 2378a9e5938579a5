package httplimit

import (
	"context"
	"errors"
	"fmt"

	"github.com/weir-project/weir/client"
)

// checkQueue refuses a Queue that would fail for every request, at construction instead of in production.
func (l *limiter) checkQueue() error {
	for i := range l.o.Routes {
		if r := &l.o.Routes[i]; r.Queue != 0 {
			if err := l.client.CheckQueue(r.Queue); err != nil {
				return fmt.Errorf("%w: route %q: Queue: %w", ErrBadOptions, r.Pattern, err)
			}
		}
	}
	return nil
}

// decide asks weir about a request of a route.
//
// While no request of a route with a Queue waits, decide asks without waiting. A request that is denied, or
// that arrives while others wait, joins weir's queue for its key, so that it does not overtake. If no wait
// within Queue helps, or the queue is full, the denial stands.
func (l *limiter) decide(ctx context.Context, r *Route, q client.Request) (client.Decision, error) {
	if r.Queue == 0 {
		return l.client.Decide(ctx, q)
	}
	if r.waiting.Load() == 0 {
		d, err := l.client.Decide(ctx, q)
		if err != nil || d.Allowed || d.Source == client.FromFallback || d.Source == client.FromBusy ||
			d.RetryAfter == client.Never || d.RetryAfter > r.Queue {
			return d, err
		}
	}
	r.waiting.Add(1)
	defer r.waiting.Add(-1)
	d, err := l.client.Queue(ctx, q, r.Queue)
	if errors.Is(err, client.ErrQueueFull) {
		return l.client.Decide(ctx, q)
	}
	return d, err
}
