package client

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// probeKey is the key of probes. Nothing is ever taken from it, so it is always idle and takes no memory.
const probeKey = "weir-client-probe"

var probeRule = TokenBucket(PerSecond(1), 1)

// probe returns nil if weir answers, if only that it is busy. It asks twice: within Options.Timeout through the pool of
// the client, and for longer on a connection of its own. The first may fail because requests hold all connections.
func (c *Client) probe(ctx context.Context) error {
	err := c.ask(ctx, c.rdb, c.options.Timeout)
	if err != nil && !absent(err) && !c.options.lockedOut(err) {
		rdb := alone(c.rdb)
		err = c.ask(ctx, rdb, max(c.lossTime, c.options.Timeout))
		if rdb != c.rdb {
			_ = rdb.Close()
		}
	}
	if cluster, ok := c.rdb.(*redis.ClusterClient); ok && err != nil {
		// The cluster client looks for a new leader only once in ClusterStateReloadInterval, by default a minute.
		cluster.ReloadState(ctx)
	}
	if err != nil && exhausted(err) {
		return errNoProof
	}
	return err
}

// ask asks for a decision that changes nothing. Like every decision it needs a leader in a cluster; PING would not. It
// returns nil if weir answers, even with an error.
func (c *Client) ask(ctx context.Context, rdb redis.UniversalClient, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	q := Request{Rule: probeRule, Key: probeKey, Peek: true}
	err := rdb.Process(ctx, &once{redis.NewCmd(ctx, q.args()...)})
	var said redis.Error
	if errors.As(err, &said) && !absent(err) && !c.options.lockedOut(err) {
		return nil
	}
	return err
}

// alone returns a client with the options of rdb and connections of its own. It returns an implementation whose options
// it cannot read as it is.
func alone(rdb redis.UniversalClient) redis.UniversalClient {
	switch rdb := rdb.(type) {
	case *redis.Client:
		o := *rdb.Options()
		o.PoolSize, o.MinIdleConns = 1, 0
		o.ReadTimeout, o.WriteTimeout = timeoutOption(o.ReadTimeout), timeoutOption(o.WriteTimeout)
		return redis.NewClient(&o)
	case *redis.ClusterClient:
		o := *rdb.Options()
		o.PoolSize, o.MinIdleConns = 1, 0
		o.ReadTimeout, o.WriteTimeout = timeoutOption(o.ReadTimeout), timeoutOption(o.WriteTimeout)
		return redis.NewClusterClient(&o)
	}
	return rdb
}

// timeoutOption returns the option that gives a new client a timeout of another client's options. They have 0 for no
// timeout, but NewClient takes 0 for the default and -1 for no timeout (go-redis 9.23.0).
func timeoutOption(timeout time.Duration) time.Duration {
	if timeout == 0 {
		return -1
	}
	return timeout
}
