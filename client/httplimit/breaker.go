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
	// maxBreakerAnswers is how many answers fit into the state.
	maxBreakerAnswers = 64
)

// BreakerState is the state of a Breaker.
type BreakerState uint8

// The states.
const (
	BreakerClosed   BreakerState = iota // requests pass
	BreakerOpen                         // requests are answered with 503
	BreakerHalfOpen                     // one request passes, to find out
)

// String returns the state as logs and metrics may show it.
func (s BreakerState) String() string {
	switch s {
	case BreakerClosed:
		return "closed"
	case BreakerOpen:
		return "open"
	}
	return "half-open"
}

// BreakerOptions are choices for NewBreaker. Zero values mean the defaults.
type BreakerOptions struct {
	// Failures among the last Answers (at most 64) open the breaker.
	Failures, Answers int
	// Pause is how long an open breaker answers 503. Then it is half-open.
	Pause time.Duration
	// Failed says which statuses are failures; nil: 500 and above. A panic is always one.
	Failed func(status int) bool
	// Changed is told of every change of state. It must not block.
	Changed func(from, to BreakerState)
}

// Breaker is a circuit breaker before the handler of one or several routes. While that fails,
// requests are answered with 503 at once. It belongs to this process, and its state has a fixed size.
type Breaker struct {
	o   BreakerOptions
	now func() time.Time

	mu      sync.Mutex
	state   BreakerState
	period  uint64    // counts the changes of state: outcomes of earlier periods say nothing
	recent  uint64    // the last answers, the newest in the lowest bit: 1 is a failure
	openEnd time.Time // open: when it becomes half-open
	nextTry time.Time // half-open: when another request passes if the last has no outcome
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
		return nil, fmt.Errorf("%w: Failures must be 1 to Answers, which is %d, not %d", ErrBadOptions, o.Answers, o.Failures)
	case o.Pause <= 0:
		return nil, fmt.Errorf("%w: Pause must be above 0, not %v", ErrBadOptions, o.Pause)
	}
	return &Breaker{o: o, now: time.Now}, nil
}

// State returns the present state. An open breaker whose pause is over is open until a request comes.
func (b *Breaker) State() BreakerState {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state
}

// pass says whether a request passes. If it does, its outcome belongs to the period; if not, wait
// is when to come back.
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

// outcome is what became of a request that passed.
type outcome uint8

const (
	succeeded outcome = iota
	failed
	unknown // its client has gone
)

// settle takes in the outcome of a request of a period.
func (b *Breaker) settle(period uint64, what outcome) {
	now := b.now()
	b.mu.Lock()
	from := b.state
	switch {
	case period != b.period:
	case from == BreakerClosed:
		b.count(now, what)
	case what == unknown:
		b.nextTry = now // the next request finds out
	case what == failed:
		b.open(now)
	default:
		b.become(BreakerClosed)
	}
	to := b.state
	b.mu.Unlock()
	b.tell(from, to)
}

// count counts an answer of a closed breaker, and opens it where there are too many failures.
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
