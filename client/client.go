package client

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-project/weir/latency"
)

// Fallback selects what decides while weir is not there. It never decides because weir is busy: see FromBusy.
type Fallback uint8

// The fallbacks. There is no default. An outage that admits everything and an outage that admits nothing have
// both been expensive.
const (
	Open   Fallback = iota + 1 // everything is admitted
	Closed                     // everything is denied
	Local                      // a limiter in this process decides, at a fraction of the limits
)

// The defaults of Options.
const (
	DefaultTimeout       = 100 * time.Millisecond // several round trips, and too short for a person to notice
	DefaultLocalFraction = 0.5
	DefaultDenialKeys    = 10_000 // some megabytes
	// maxDenialAge bounds how long a denial is answered from memory. After it, a limiter that another client reset
	// and a policy that was changed take effect.
	maxDenialAge = 10 * time.Second
)

// Options configure a Client. A zero value selects the default.
type Options struct {
	// WhenDown is the fallback. It is required.
	WhenDown Fallback
	// LocalFraction is the part of each limit that the fallback Local admits in all instances together, above 0
	// and up to 1.
	LocalFraction float64
	// Instances is the number of processes with this configuration. Each takes an equal part of the fraction. The
	// default is 1.
	Instances int
	// LocalIdle is how long the fallback Local remembers an unused key. By default it remembers a key until its
	// limiter is idle.
	LocalIdle time.Duration
	// Timeout bounds the time of a decision in every failure. The caller's context may bound it further.
	Timeout time.Duration
	// FallBackOnErrors makes WhenDown also decide requests that weir answers with an error: a wrong password, no
	// memory for a new limiter, a policy that does not exist. By default Decide returns such errors, because with
	// Open a mistake in a rule would switch its limit off.
	FallBackOnErrors bool
	// IDs gives every decision an ID. The client then resends a decision with an unknown outcome, and it counts
	// once. Each ID costs weir about 120 bytes a key for a minute. Without IDs such a request is refused (FromBusy),
	// and weir may have counted it.
	IDs bool
	// DenialKeys is how many denied keys are remembered. A negative number disables the memory.
	DenialKeys int
	// Logger receives a line for each switch to or from the fallback. nil means slog.Default().
	Logger *slog.Logger
}

func (o *Options) complete() error {
	o.LocalFraction = cmp.Or(o.LocalFraction, DefaultLocalFraction)
	o.Instances = cmp.Or(o.Instances, 1)
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	o.DenialKeys = cmp.Or(o.DenialKeys, DefaultDenialKeys)
	o.Logger = cmp.Or(o.Logger, slog.Default())
	switch {
	case o.WhenDown < Open || o.WhenDown > Local:
		return fmt.Errorf("%w: WhenDown must be Open, Closed or Local", ErrBadOptions)
	case !(o.LocalFraction > 0 && o.LocalFraction <= 1):
		return fmt.Errorf("%w: LocalFraction must be above 0 and at most 1, not %v", ErrBadOptions, o.LocalFraction)
	case o.Instances < 1:
		return fmt.Errorf("%w: Instances must be at least 1, not %d", ErrBadOptions, o.Instances)
	case o.LocalIdle < 0:
		return fmt.Errorf("%w: LocalIdle must be 0 or more, not %v", ErrBadOptions, o.LocalIdle)
	case o.Timeout < time.Millisecond:
		return fmt.Errorf("%w: Timeout must be at least 1ms, not %v", ErrBadOptions, o.Timeout)
	}
	return nil
}

// Client asks weir for decisions. Its methods are safe for concurrent use.
type Client struct {
	rdb       redis.UniversalClient
	options   Options
	lossTime  time.Duration // the constant, except in tests
	breaker   *breaker
	local     *localLimiter // nil unless WhenDown is Local
	policies  *policyCache  // nil unless WhenDown is Local
	refusals  series        // of decisions that weir refuses with an error, so that WhenDown makes them
	busy      series        // of requests that are refused because weir is busy
	pipeliner *pipeliner
	queued    chan struct{} // a token for each request in Queue
	denials   *denials
	counts    counters
	times     latency.Histogram
}

// New returns a client that asks weir through rdb. The caller still closes rdb. The Redis client must respect
// deadlines (ContextTimeoutEnabled); without that, the client could not keep Options.Timeout.
func New(rdb redis.UniversalClient, o Options) (*Client, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	if missing(rdb) {
		return nil, fmt.Errorf("%w: the Redis client is nil: make it with redis.NewClient", ErrBadOptions)
	}
	if !settingsOf(rdb).keepsDeadlines {
		return nil, fmt.Errorf("%w: make the Redis client with ContextTimeoutEnabled: true, or its calls outlast "+
			"every deadline", ErrBadOptions)
	}
	c := &Client{rdb: rdb, options: o, denials: newDenials(o.DenialKeys), pipeliner: newPipeliner(rdb, o.Timeout),
		lossTime: lossTime}
	c.queued = make(chan struct{}, mostQueued(rdb))
	if o.WhenDown == Local {
		c.local = newLocalLimiter(o.LocalFraction / float64(o.Instances))
		if o.LocalIdle > 0 {
			c.local.idle = newIdleKeys(o.LocalIdle)
		}
		c.policies = newPolicyCache(c)
	}
	c.refusals = series{log: o.Logger, ended: "weir decides again",
		began: "weir answers with an error: the fallback decides the requests that weir refuses"}
	c.busy = series{log: o.Logger, ended: "weir is no longer too busy",
		began: "weir is busy: requests that it does not answer in time are refused"}
	c.breaker = newBreaker(c.probe, o.Logger, &c.counts)
	return c, nil
}

// missing reports whether rdb is nil, or a nil pointer.
func missing(rdb redis.UniversalClient) bool {
	v := reflect.ValueOf(rdb)
	return rdb == nil || v.Kind() == reflect.Pointer && v.IsNil()
}

// Close ends the goroutines that probe weir and fetch policies. It waits for commands in flight, at most for
// Options.Timeout. After Close, the client stays in its state: weir or the fallback decides, as before.
func (c *Client) Close() error {
	if c.policies != nil {
		c.policies.close()
	}
	c.breaker.close()
	c.pipeliner.close()
	return nil
}

// Down reports whether weir is not there, so that Options.WhenDown decides.
func (c *Client) Down() bool { return c.breaker.down.Load() }

// newID returns a unique token.
func newID() string { return rand.Text() }

// StandIn gives the fallback Local the rules of policies (see Policy) before a request names the policies. It is the
// only way to give rules for policies in Request.Also. The client fetches policies without rules from weir.
func (c *Client) StandIn(policies ...*Rule) {
	if c.local == nil {
		return
	}
	for _, r := range policies {
		if r.err != nil || r.policy == "" {
			continue
		}
		if len(r.local) == 0 {
			c.policies.use(r.policy)
			continue
		}
		c.policies.exempt(r.policy)
		c.local.define(r)
	}
}
