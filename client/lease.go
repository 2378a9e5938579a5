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

// DefaultLeaseAge is how long units of a lease may wait to be used: shorter than the
// windows that are worth a lease.
const DefaultLeaseAge = time.Second

// LeaseOptions shape a Lease.
type LeaseOptions struct {
	// Batch is how many units are taken at once; required. More make fewer round trips,
	// and more units that wait here while others could use them.
	Batch int64
	// MaxAge is how long units may wait here, DefaultLeaseAge unless given.
	MaxAge time.Duration
}

// Lease hands out units of one very hot key. It takes them from weir in batches and
// first, so that all processes together never hand out more than was granted; a process
// that dies takes what it had with it. Units that are not used in time are given back.
//
// Units wait in it for up to MaxAge. So over any time T the key's limit admits no more
// than it does over T + MaxAge.
type Lease struct {
	client *Client
	q      Request
	maxAge time.Duration
	start  time.Time

	batch  atomic.Pointer[batch]
	denied atomic.Pointer[refusal]

	filling chan struct{} // holds a token while a batch is fetched
	mu      sync.Mutex    // guards closed, and that no batch comes in behind it
	closed  bool
}

// batch is units that are here. It is over when its time is, or it is empty.
type batch struct {
	left     atomic.Int64
	untilNs  int64         // since the start of the lease
	refund   time.Time     // until when units may go back: see refundable
	d        Decision      // what was answered when it was taken
	timer    *time.Timer   // gives back what is left when the time is over
	returned chan struct{} // closed when it has
}

// refusal is a denial, good until its retry time but not for long: somebody else may
// reset the limiter, and weir be back after an outage.
type refusal struct {
	d    Decision
	at   time.Time
	good time.Duration
}

func newRefusal(d Decision) *refusal {
	longest := maxDenialAge
	if d.Source == FromFallback {
		longest = probeMost
	}
	return &refusal{d: d, at: time.Now(), good: min(d.RetryAfter, longest)}
}

// spent is so far below zero that no number of takes makes it positive.
const spent = -1 << 62

// Lease begins a lease of a key. Only token buckets and windows can be leased: what they
// granted can be given back in part.
func (c *Client) Lease(r *Rule, key string, o LeaseOptions) (*Lease, error) {
	q := Request{Rule: r, Key: key, Cost: o.Batch, Partial: true}
	if err := q.check(); err != nil {
		return nil, err
	}
	switch {
	case r.policy != "":
		return nil, fmt.Errorf("%w: a policy cannot be leased, its limits can", ErrBadRequest)
	case o.Batch < 1 || o.MaxAge < 0:
		return nil, fmt.Errorf("%w: Batch must be at least 1 and MaxAge not negative", ErrBadRequest)
	}
	return &Lease{
		client: c, q: q, maxAge: cmp.Or(o.MaxAge, DefaultLeaseAge), start: time.Now(), filling: make(chan struct{}, 1),
	}, nil
}

// Take asks for one unit. It needs a round trip where no unit is left here, and then no
// longer than Options.Timeout.
func (l *Lease) Take(ctx context.Context) (Decision, error) {
	for {
		// Since asks the monotonic clock alone, which is half of what Now costs.
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

// fill fetches a batch and decides by it, or waits for whoever fetches one; then the caller
// has to look again.
func (l *Lease) fill(ctx context.Context) (d Decision, again bool, err error) {
	batch, denied := l.batch.Load(), l.denied.Load()
	select {
	case l.filling <- struct{}{}:
		defer func() { <-l.filling }()
	case <-ctx.Done():
		return Decision{}, false, ctx.Err()
	}
	if l.batch.Load() != batch || l.denied.Load() != denied { // while this one waited
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

// put makes a batch of what was granted, when it was asked for or later: the answer may
// have been long on its way, so the time to give units back runs from there. Its first unit
// is for who asked, however soon the others are over.
func (l *Lease) put(d Decision, asked time.Time) (Decision, error) {
	now, age := time.Now(), l.maxAge
	if d.ResetAfter != Never {
		age = min(age, d.ResetAfter)
	}
	b := &batch{untilNs: int64(now.Sub(l.start) + age), refund: asked.Add(l.refundable(&d)), d: d, returned: make(chan struct{})}
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

// refundable is how long units may go back: while the limiter still has them as used.
// Later they would be somebody else's.
func (l *Lease) refundable(d *Decision) time.Duration {
	switch {
	case d.ResetAfter == Never:
		return time.Duration(engine.MaxWindowNs)
	case l.q.Rule.kind == engine.SlidingCounter: // its units move to another count when the window ends
		return d.ResetAfter - l.q.Rule.window
	}
	return d.ResetAfter
}

// giveBack empties a batch and gives its units back, if there is still time. It is called
// once for each.
func (l *Lease) giveBack(b *batch) {
	defer close(b.returned)
	left := b.left.Swap(spent)
	if left > 0 && time.Until(b.refund) > l.client.options.Timeout {
		l.client.giveBack(context.Background(), &l.q, left, b.d.Source)
	}
}

// Close gives back what is left, and returns when that is done. Take fails with ErrClosed
// then.
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
