package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-project/weir/latency"
)

// Fallback is what decides while weir cannot be reached.
type Fallback uint8

// The fallbacks. There is no default: both an outage that lets everything through and
// one that lets nothing through have cost somebody dearly.
const (
	Open   Fallback = iota + 1 // everything is admitted
	Closed                     // everything is denied
	Local                      // a limiter in this process decides, at a fraction of the limits
)

// The defaults of Options.
const (
	DefaultTimeout       = 100 * time.Millisecond // some round trips, and less than a person notices
	DefaultLocalFraction = 0.5
	DefaultDenialKeys    = 10_000 // some megabytes
	// maxDenialAge bounds how long a denial is answered from memory, so that a limiter
	// that was reset by somebody else, or a policy that was changed, counts again soon.
	maxDenialAge = 10 * time.Second
)

// Options are choices for a Client. Zero values mean the defaults.
type Options struct {
	// WhenDown must be given.
	WhenDown Fallback
	// LocalFraction of each limit is what a fallback of Local admits in all instances
	// together, above 0 and up to 1.
	LocalFraction float64
	// Instances is how many processes like this one there are; each takes an equal part
	// of the fraction. 1 unless given.
	Instances int
	// LocalIdle is how long a fallback of Local remembers a key that nobody uses. Unless given, it
	// remembers each until its limit is whole again, which for long windows is longer.
	LocalIdle time.Duration
	// Timeout bounds a decision, whatever happens to weir; the caller's context may
	// bound it further.
	Timeout time.Duration
	// FallBackOnErrors lets WhenDown decide, too, what weir answers with an error: a wrong password,
	// no memory for a new limiter, a policy that does not exist. Unless set, Decide returns such
	// errors, because with Open a mistake in a rule would switch its limit off.
	FallBackOnErrors bool
	// IDs gives every decision an ID, so that one whose outcome is unknown is sent again
	// and counts once. It costs weir a hundred bytes for a minute each. Without it such a
	// decision is made by WhenDown, and may have been counted besides.
	IDs bool
	// DenialKeys is how many denied keys are remembered; negative: none.
	DenialKeys int
	// Logger is told of switches; nil: slog.Default().
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

// Client decides. Its methods may be called from many goroutines.
type Client struct {
	rdb      redis.UniversalClient
	options  Options
	link     *link
	local    *localLimiter // nil unless WhenDown is Local
	policies *policyCache  // the same
	refusals refusals
	together *together
	queued   chan struct{} // a token for each request in Queue
	denials  *denials
	counts   counters
	times    latency.Histogram
}

// New returns a client that asks weir through rdb, which stays the caller's to close.
// The Redis client must respect deadlines (ContextTimeoutEnabled): without that nothing
// here could keep its time.
func New(rdb redis.UniversalClient, o Options) (*Client, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	if !keepsDeadlines(rdb) {
		return nil, fmt.Errorf("%w: make the Redis client with ContextTimeoutEnabled: true, or its calls outlast every deadline", ErrBadOptions)
	}
	c := &Client{rdb: rdb, options: o, denials: newDenials(o.DenialKeys), together: newTogether(rdb, o.Timeout)}
	c.queued = make(chan struct{}, mostQueued(rdb))
	if o.WhenDown == Local {
		c.local = newLocalLimiter(o.LocalFraction / float64(o.Instances))
		if o.LocalIdle > 0 {
			c.local.idle = newIdleKeys(o.LocalIdle)
		}
		c.policies = newPolicyCache(c)
	}
	c.refusals.log = o.Logger
	c.link = newLink(c.probe, o.Logger, &c.counts)
	return c, nil
}

// keepsDeadlines is true also for clients of another make, which cannot be asked.
func keepsDeadlines(rdb redis.UniversalClient) bool {
	switch rdb := rdb.(type) {
	case *redis.Client:
		return rdb.Options().ContextTimeoutEnabled
	case *redis.ClusterClient:
		return rdb.Options().ContextTimeoutEnabled
	case *redis.Ring:
		return rdb.Options().ContextTimeoutEnabled
	}
	return true
}

// Close ends the goroutines that look whether weir is back and fetch policies, if there are any,
// and waits for what is on its way, no longer than Options.Timeout. Decisions go on as they are
// then.
func (c *Client) Close() error {
	if c.policies != nil {
		c.policies.close()
	}
	c.link.close()
	c.together.close()
	return nil
}

// Down says whether weir is not reached, and Options.WhenDown decides.
func (c *Client) Down() bool { return c.link.down.Load() }

// probeKey is what a probe looks at. Nothing is ever taken from it, so it is always idle
// and not kept anywhere.
const probeKey = "weir-client-probe"

var probeRule = TokenBucket(PerSecond(1), 1)

// probe asks for a decision that changes nothing. It needs what every decision needs, in
// a cluster a leader; PING would not.
func (c *Client) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	q := Request{Rule: probeRule, Key: probeKey, Peek: true}
	err := c.rdb.Process(ctx, &once{redis.NewCmd(ctx, q.args()...)})
	if outcomeOf(err) == refused && !c.lockedOut(err) { // it answers, whatever it thinks of the probe
		return nil
	}
	if cluster, ok := c.rdb.(*redis.ClusterClient); ok && err != nil {
		// It asks who leads now only once in ClusterStateReloadInterval, a minute unless told otherwise.
		cluster.ReloadState(ctx)
	}
	return err
}

// newID makes up a token that nobody else has.
func newID() string { return rand.Text() }
