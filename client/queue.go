package client

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// longestTimeout is the most that weir holds a request back for.
	longestTimeout = time.Hour
	// defaultPool is the size of a pool that is not known: that of go-redis on one processor.
	defaultPool = 10
)

// mostQueued is how many requests may wait at once. Each takes a connection, so half of the pool
// stays for decisions that do not wait.
func mostQueued(rdb redis.UniversalClient) int {
	size := 0
	switch rdb := rdb.(type) {
	case *redis.Client:
		size = rdb.Options().PoolSize
	case *redis.ClusterClient:
		size = rdb.Options().PoolSize
	case *redis.Ring:
		size = rdb.Options().PoolSize
	}
	return max(cmp.Or(size, defaultPool)/2, 1)
}

// Queue has weir hold the request back until it is admitted, for at most the given time,
// and answers the denial of that moment otherwise. Requests for one key stand in line on
// their node, first come, first served; nothing is polled. Where Wait spends its time here
// and works for several limits, Queue takes one connection of the pool while it waits,
// which go-redis gives up at the deadline of ctx only, not when ctx is cancelled. Requests of one
// client take at most half of the connections of its pool, and at weir at most 1000 wait for one key:
// a request beyond that gets ErrQueueFull at once.
//
// The Redis client's ReadTimeout must be above the time, or -1 for none.
func (c *Client) Queue(ctx context.Context, q Request, longest time.Duration) (Decision, error) {
	if deadline, ok := ctx.Deadline(); ok { // an answer is worth more than a connection cut
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
	k := &call{args: append(append([]any{"RL.WAIT"}, q.args()...), "TIMEOUT", duration(longest)), slow: true}
	c.send(bounded, []*call{k})
	if redis.HasErrorPrefix(k.err, "OVERLOADED") { // the line is full; weir is well
		c.counts.refused.Add(1)
		return Decision{}, fmt.Errorf("%w: %w: %w", ErrRefused, ErrQueueFull, k.err)
	}
	return c.conclude(ctx, &q, k)
}

func (c *Client) checkQueue(q *Request, longest time.Duration) error {
	if q.ID != "" {
		return fmt.Errorf("%w: a request that waits on the server has no ID: it is tried again there", ErrBadRequest)
	}
	return c.CheckQueue(longest)
}

// CheckQueue returns the error that Queue would return for every request that is to wait so long.
func (c *Client) CheckQueue(longest time.Duration) error {
	read := readTimeout(c.rdb)
	switch {
	case longest < 0 || longest > longestTimeout:
		return fmt.Errorf("%w: weir holds a request for 0 to %v, not %v", ErrBadRequest, longestTimeout, longest)
	case read > 0 && read <= longest:
		return fmt.Errorf("%w: the Redis client's ReadTimeout of %v ends a wait of %v: make it longer, or -1", ErrBadRequest, read, longest)
	}
	return nil
}

// readTimeout is how long the Redis client waits for a reply; 0: not known, or for ever.
func readTimeout(rdb redis.UniversalClient) time.Duration {
	switch rdb := rdb.(type) {
	case *redis.Client:
		return max(rdb.Options().ReadTimeout, 0)
	case *redis.ClusterClient:
		return max(rdb.Options().ReadTimeout, 0)
	case *redis.Ring:
		return max(rdb.Options().ReadTimeout, 0)
	}
	return 0
}
