package client

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-project/weir/engine"
)

// DefaultLeaseAge is the default of LeaseOptions.MaxAge. It is shorter than the windows for which a lease is
// useful.
const DefaultLeaseAge = time.Second

// LeaseOptions configure a Lease.
type LeaseOptions struct {
	// Batch is how many units are taken at once. It is required. A larger batch needs fewer round trips, and keeps
	// more units from other processes.
	Batch int64
	// MaxAge is how long units may stay in the lease. The default is DefaultLeaseAge.
	MaxAge time.Duration
}

// Lease hands out units of one very hot key. It takes them from weir in batches, before it hands them out. So
// all processes together never hand out more units than weir granted. A process that dies loses its units.
// Unused units are given back in time.
//
// A unit stays in the lease for up to MaxAge. So leases hand out over any time T at most what the key's limit admits
// over T + MaxAge.
type Lease struct {
	client *Client
	q      Request
	maxAge time.Duration
	start  time.Time

	batch  atomic.Pointer[batch]
	denied atomic.Pointer[refusal]

	filling chan struct{} // holds a token while a batch is fetched
	mu      sync.Mutex    // guards closed; no batch is added after it is set
	closed  bool
}

// batch is the units of one decision in the lease. It is over when its time has passed or no unit is left.
type batch struct {
	left     atomic.Int64
	untilNs  int64         // since the start of the lease
	refund   time.Time     // units may be given back until then: see refundable
	d        Decision      // the decision that granted it
	timer    *time.Timer   // calls giveBack when the time has passed
	returned chan struct{} // closed when giveBack has ended
}

// refusal is a denial. It is valid until its retry time, but only for a bounded time: another client may reset
// the limiter, and weir may be reached again after an outage.
type refusal struct {
	d    Decision
	at   time.Time
	good time.Duration // the denial is valid for this time after at
}

func newRefusal(d Decision) *refusal {
	longest := maxDenialAge
	if d.Source == FromFallback || d.Source == FromBusy {
		longest = maxProbePause
	}
	if d.RetryAfter == Never { // only weir knows when a block or a reset ends it
		longest = 0
	}
	return &refusal{d: d, at: time.Now(), good: min(d.RetryAfter, longest)}
}

// spent is the value of batch.left after giveBack. Takes still decrement it, and 2^62 of them do not wrap it to a
// positive number.
const spent = -1 << 62

// Lease begins a lease of a key. Only token buckets and windows can be leased, because a part of what they
// granted can be given back.
func (c *Client) Lease(r *Rule, key string, o LeaseOptions) (*Lease, error) {
	q := Request{Rule: r, Key: key, Cost: o.Batch, Partial: true}
	if err := q.check(); err != nil {
		return nil, err
	}
	switch {
	case r.policy != "":
		return nil, fmt.Errorf("%w: a policy cannot be leased: lease its limits", ErrBadRequest)
	case o.Batch < 1 || o.MaxAge < 0:
		return nil, fmt.Errorf("%w: Batch must be at least 1 and MaxAge not negative", ErrBadRequest)
	}
	return &Lease{
		client: c, q: q, maxAge: cmp.Or(o.MaxAge, DefaultLeaseAge), start: time.Now(), filling: make(chan struct{}, 1),
	}, nil
}

// Take asks for one unit. If the lease has no unit left, Take needs a round trip of at most Options.Timeout.
func (l *Lease) Take(ctx context.Context) (Decision, error) {
	for {
		// time.Since reads the monotonic clock alone, which costs half of time.Now.
		if b := l.batch.Load(); b != nil && int64(time.Since(l.start)) < b.untilNs && b.left.Add(-1) >= 0 {
			return b.unit(), nil
		}
		if r := l.denied.Load(); r != nil && time.Since(r.at) < r.good {
			return r.left(), nil
		}
		if d, again, err := l.fill(ctx); !again {
			return d, err
		}
	}
}

func (b *batch) unit() Decision {
	d := b.d
	d.Granted = 1
	return d
}

func (r *refusal) left() Decision {
	d := r.d
	d.Source = FromMemory
	d.RetryAfter = max(d.RetryAfter-time.Since(r.at), 0)
	return d
}

// fill fetches a batch and decides by it. If another goroutine is fetching a batch, fill waits for that batch, and
// again is true: the caller retries.
func (l *Lease) fill(ctx context.Context) (d Decision, again bool, err error) {
	batch, denied := l.batch.Load(), l.denied.Load()
	select {
	case l.filling <- struct{}{}:
		defer func() { <-l.filling }()
	case <-ctx.Done():
		return Decision{}, false, ctx.Err()
	}
	if l.batch.Load() != batch || l.denied.Load() != denied { // changed while this call waited
		return Decision{}, true, nil
	}
	if l.isClosed() {
		return Decision{}, false, ErrClosed
	}
	asked := time.Now()
	d, err = l.client.Decide(ctx, l.q)
	switch {
	case err != nil:
		return Decision{}, false, err
	case !d.Allowed:
		l.denied.Store(newRefusal(d))
		return d, false, nil
	}
	d, err = l.put(d, asked)
	return d, false, err
}

func (l *Lease) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// put makes a batch of the granted units. Its refund time is counted from the request, because the answer may
// have been delayed. The first unit belongs to the caller, however soon the others expire.
func (l *Lease) put(d Decision, asked time.Time) (Decision, error) {
	now, age := time.Now(), l.maxAge
	if d.ResetAfter != Never {
		age = min(age, d.ResetAfter)
	}
	b := &batch{untilNs: int64(now.Sub(l.start) + age), refund: asked.Add(l.refundable(&d)), d: d,
		returned: make(chan struct{})}
	b.left.Store(d.Granted)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		l.giveBack(b)
		return Decision{}, ErrClosed
	}
	b.left.Add(-1)
	b.timer = time.AfterFunc(age, func() { l.giveBack(b) })
	l.batch.Store(b)
	return b.unit(), nil
}

// refundable returns how long units may be given back: as long as the limiter counts them as used. Later
// refunds would give back units of other requests.
func (l *Lease) refundable(d *Decision) time.Duration {
	switch {
	case d.ResetAfter == Never:
		return time.Duration(engine.MaxWindowNs)
	case l.q.Rule.kind == engine.SlidingCounter: // its units move to another count when the window ends
		return d.ResetAfter - l.q.Rule.window
	}
	return d.ResetAfter
}

// giveBack empties a batch and gives its units back, unless it is too late for that (batch.refund). It is called once
// for each batch.
func (l *Lease) giveBack(b *batch) {
	defer close(b.returned)
	left := b.left.Swap(spent)
	if left > 0 && time.Until(b.refund) > l.client.options.Timeout {
		l.client.giveBack(context.Background(), &l.q, left, b.d.Source)
	}
}

// Close gives back the units that are left, and waits for that. Take then fails with ErrClosed.
func (l *Lease) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.batch.Load()
	if !l.closed && b != nil {
		if b.timer.Stop() {
			l.giveBack(b)
		}
		<-b.returned
	}
	l.closed = true
	return nil
}
