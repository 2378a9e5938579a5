package httplimit

import (
	"cmp"
	"fmt"
	mathbits "math/bits"
	"net/http"
	"sync"
	"time"
)

// The defaults of BreakerOptions.
const (
	DefaultBreakerFailures = 5
	DefaultBreakerAnswers  = 10
	DefaultBreakerPause    = 5 * time.Second
	// maxBreakerAnswers is how many answers fit into Breaker.recent.
	maxBreakerAnswers = 64
)

// BreakerState is the state of a Breaker.
type BreakerState uint8

// The states.
const (
	BreakerClosed   BreakerState = iota // requests pass
	BreakerOpen                         // requests are answered with 503
	BreakerHalfOpen                     // one request passes as a probe
)

// String returns the state for logs and metrics.
func (s BreakerState) String() string {
	switch s {
	case BreakerClosed:
		return "closed"
	case BreakerOpen:
		return "open"
	}
	return "half-open"
}

// BreakerOptions configure NewBreaker. A zero value selects the default.
type BreakerOptions struct {
	// Failures among the last Answers (at most 64) open the breaker.
	Failures, Answers int
	// Pause is how long an open breaker answers with 503. After that it is half-open.
	Pause time.Duration
	// Failed reports whether a status is a failure. The default is 500 and above. A panic is always a failure.
	Failed func(status int) bool
	// Changed is called for every change of state. It must not block.
	Changed func(from, to BreakerState)
}

// Breaker is a circuit breaker for the handler of one or several routes. While the handler fails, requests are
// answered with 503 at once. A breaker belongs to this process, and its state has a fixed size.
type Breaker struct {
	o   BreakerOptions
	now func() time.Time

	mu      sync.Mutex
	state   BreakerState
	period  uint64    // counts the changes of state; outcomes of earlier periods are ignored
	recent  uint64    // the last answers, the newest in the lowest bit: 1 is a failure
	openEnd time.Time // open: when it becomes half-open
	nextTry time.Time // half-open: when the next probe passes if the last probe has no outcome until then
}

// NewBreaker returns a closed breaker.
func NewBreaker(o BreakerOptions) (*Breaker, error) {
	o.Failures = cmp.Or(o.Failures, DefaultBreakerFailures)
	o.Answers = cmp.Or(o.Answers, max(DefaultBreakerAnswers, o.Failures))
	o.Pause = cmp.Or(o.Pause, DefaultBreakerPause)
	if o.Failed == nil {
		o.Failed = func(status int) bool { return status >= http.StatusInternalServerError }
	}
	switch {
	case o.Answers < 1 || o.Answers > maxBreakerAnswers:
		return nil, fmt.Errorf("%w: Answers must be 1 to %d, not %d", ErrBadOptions, maxBreakerAnswers, o.Answers)
	case o.Failures < 1 || o.Failures > o.Answers:
		return nil, fmt.Errorf("%w: Failures must be 1 to Answers, which is %d, not %d", ErrBadOptions,
			o.Answers, o.Failures)
	case o.Pause <= 0:
		return nil, fmt.Errorf("%w: Pause must be above 0, not %v", ErrBadOptions, o.Pause)
	}
	return &Breaker{o: o, now: time.Now}, nil
}

// State returns the current state. An open breaker whose pause has passed stays open until the next request.
func (b *Breaker) State() BreakerState {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state
}

// pass reports whether a request passes. If it does, the caller reports its outcome with settle and the returned
// period. If not, wait is its retry time.
func (b *Breaker) pass() (period uint64, wait time.Duration, ok bool) {
	now := b.now()
	b.mu.Lock()
	if b.state == BreakerClosed {
		defer b.mu.Unlock()
		return b.period, 0, true
	}
	until := b.openEnd
	if b.state == BreakerHalfOpen {
		until = b.nextTry
	}
	if wait = until.Sub(now); wait > 0 {
		defer b.mu.Unlock()
		return 0, wait, false
	}
	from := b.state
	if from == BreakerOpen {
		b.become(BreakerHalfOpen)
	}
	b.nextTry = now.Add(b.o.Pause)
	period = b.period
	b.mu.Unlock()
	b.tell(from, BreakerHalfOpen)
	return period, 0, true
}

// outcome is the outcome of a request that passed.
type outcome uint8

const (
	succeeded outcome = iota
	failed
	unknown // the client has disconnected
)

// settle applies the outcome of a request that passed in the given period. It ignores a request of an earlier
// period.
func (b *Breaker) settle(period uint64, what outcome) {
	now := b.now()
	b.mu.Lock()
	from := b.state
	switch {
	case period != b.period:
	case from == BreakerClosed:
		b.count(now, what)
	case what == unknown:
		b.nextTry = now // the next request is the probe
	case what == failed:
		b.open(now)
	default:
		b.become(BreakerClosed)
	}
	to := b.state
	b.mu.Unlock()
	b.tell(from, to)
}

// count records an answer of a closed breaker, and opens the breaker after too many failures.
func (b *Breaker) count(now time.Time, what outcome) {
	if what == unknown {
		return
	}
	b.recent <<= 1
	if what == failed {
		b.recent |= 1
	}
	b.recent &= 1<<b.o.Answers - 1
	if mathbits.OnesCount64(b.recent) >= b.o.Failures {
		b.open(now)
	}
}

func (b *Breaker) open(now time.Time) {
	b.become(BreakerOpen)
	b.openEnd = now.Add(b.o.Pause)
}

func (b *Breaker) become(s BreakerState) {
	b.state = s
	b.period++
	b.recent = 0
}

func (b *Breaker) tell(from, to BreakerState) {
	if from != to && b.o.Changed != nil {
		b.o.Changed(from, to)
	}
}
