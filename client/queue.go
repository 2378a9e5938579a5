package client

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// longestTimeout is the longest time for which weir holds a request back.
	longestTimeout = time.Hour
	// defaultPool is the assumed size of a pool that is not known: the default of go-redis on one processor.
	defaultPool = 10
)

// mostQueued returns how many requests may wait at once. Each takes a connection, so half of the pool stays for
// decisions that do not wait.
func mostQueued(rdb redis.UniversalClient) int {
	return max(cmp.Or(settingsOf(rdb).poolSize, defaultPool)/2, 1)
}

// redisSettings are the options of a Redis client on which this package depends.
type redisSettings struct {
	poolSize       int
	readTimeout    time.Duration // 0 or less: none
	keepsDeadlines bool
}

// settingsOf returns the options of a Redis client. Of an implementation whose options it cannot read, it assumes that
// the client keeps deadlines.
func settingsOf(rdb redis.UniversalClient) redisSettings {
	switch rdb := rdb.(type) {
	case *redis.Client:
		o := rdb.Options()
		return redisSettings{o.PoolSize, o.ReadTimeout, o.ContextTimeoutEnabled}
	case *redis.ClusterClient:
		o := rdb.Options()
		return redisSettings{o.PoolSize, o.ReadTimeout, o.ContextTimeoutEnabled}
	case *redis.Ring:
		o := rdb.Options()
		return redisSettings{o.PoolSize, o.ReadTimeout, o.ContextTimeoutEnabled}
	}
	return redisSettings{keepsDeadlines: true}
}

// Queue makes weir hold the request back until it is admitted, but not longer than longest. After that time it
// returns the denial. Each node queues the requests that it receives for one key in the order of their arrival.
// Nothing is polled.
//
// Wait, in contrast, waits in this process and works for several limits. Queue takes one connection of the pool
// while it waits. go-redis releases the connection at the deadline of ctx, but not when ctx is cancelled.
// Requests of one client take at most half of the connections of its pool. At weir, at most 1000 requests wait
// for one key. A request beyond these bounds gets ErrQueueFull at once.
//
// The Redis client's ReadTimeout must be longer than longest, or -1 for none.
func (c *Client) Queue(ctx context.Context, q Request, longest time.Duration) (Decision, error) {
	if deadline, ok := ctx.Deadline(); ok { // leave time for the answer, so that the connection is kept
		longest = max(min(longest, time.Until(deadline)-c.options.Timeout), 0)
	}
	if err := q.check(); err != nil {
		return Decision{}, err
	}
	if err := c.checkQueue(&q, longest); err != nil {
		return Decision{}, err
	}
	if err := ctx.Err(); err != nil {
		return Decision{}, err
	}
	if c.Down() {
		return c.fallBack(&q), nil
	}
	select {
	case c.queued <- struct{}{}:
		defer func() { <-c.queued }()
	default:
		return Decision{}, fmt.Errorf("%w: %w", ErrRefused, ErrQueueFull)
	}
	bounded, cancel := context.WithTimeout(ctx, longest+c.options.Timeout)
	defer cancel()
	k := &call{args: append(append([]any{"RL.WAIT"}, q.args()...), "TIMEOUT", wholeMs(longest)), slow: true}
	c.send(bounded, []*call{k})
	if redis.HasErrorPrefix(k.err, "OVERLOADED") { // the queue is full, but weir is reachable
		c.counts.refused.Add(1)
		return Decision{}, fmt.Errorf("%w: %w: %w", ErrRefused, ErrQueueFull, k.err)
	}
	return c.conclude(ctx, &q, k)
}

func (c *Client) checkQueue(q *Request, longest time.Duration) error {
	if q.ID != "" {
		return fmt.Errorf("%w: a request that waits on the server must not have an ID, because the server tries it "+
			"several times", ErrBadRequest)
	}
	return c.CheckQueue(longest)
}

// CheckQueue returns the error that Queue would return for every request with this longest wait.
func (c *Client) CheckQueue(longest time.Duration) error {
	read := settingsOf(c.rdb).readTimeout
	switch {
	case longest < 0 || longest > longestTimeout:
		return fmt.Errorf("%w: weir holds a request for 0 to %v, not %v", ErrBadRequest, longestTimeout, longest)
	case read > 0 && read <= longest:
		return fmt.Errorf("%w: the Redis client's ReadTimeout of %v ends a wait of %v: make it longer, or -1",
			ErrBadRequest, read, longest)
	}
	return nil
}
