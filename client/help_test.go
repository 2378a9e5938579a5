package client_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/internal/weirtest"
)

// patient is a timeout far above the time of a decision, so that a busy machine causes no outage.
const patient = 10 * time.Second

// probe is a rule for tests that are not about rules.
var probe = client.TokenBucket(client.PerSecond(1), 1)

func newClient(t testing.TB, s *weirtest.Server, o client.Options) *client.Client {
	t.Helper()
	return newClientOn(t, s.Redis(), o)
}

// newClientOn returns a client for a test. By default it is patient, logs nothing, and closes at the end.
func newClientOn(t testing.TB, rdb redis.UniversalClient, o client.Options) *client.Client {
	t.Helper()
	if o.WhenDown == 0 {
		o.WhenDown = client.Closed
	}
	if o.Timeout == 0 {
		o.Timeout = patient
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	c, err := client.New(rdb, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// newPatientProber returns a client that waits longer for the answer to a probe than a busy machine stands still. A
// shorter ReadTimeout of the Redis client would end the wait.
func newPatientProber(t testing.TB, rdb *redis.Client, o client.Options) *client.Client {
	t.Helper()
	require.GreaterOrEqual(t, rdb.Options().ReadTimeout, weirtest.Wait)
	c := newClientOn(t, rdb, o)
	c.SetLossTime(weirtest.Wait)
	return c
}

// decide returns the decision of a valid request.
func decide(t testing.TB, c *client.Client, q client.Request) client.Decision {
	t.Helper()
	d, err := c.Decide(t.Context(), q)
	require.NoError(t, err)
	return d
}

// used returns the used units of a key, according to weir.
func used(t testing.TB, c *client.Client, key string) int64 {
	t.Helper()
	info, err := c.Inspect(t.Context(), key)
	require.NoError(t, err)
	return info.Used
}

// impostor returns a Redis client whose server is fake. serve gets its connections. The client does not greet, so the
// first bytes are the request.
func impostor(t testing.TB, serve func(net.Conn)) *redis.Client {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			defer nc.Close() // at the end, unless serve has closed it
			go serve(nc)
		}
	}()
	rdb := redis.NewClient(&redis.Options{Addr: ln.Addr().String(), ContextTimeoutEnabled: true, Protocol: 2,
		DisableIdentity: true, ReadTimeout: weirtest.Wait})
	t.Cleanup(func() {
		_ = rdb.Close()
		_ = ln.Close()
	})
	return rdb
}

// nowhere returns a Redis client that gets this error for each connection.
func nowhere(t testing.TB, errno syscall.Errno) *redis.Client {
	rdb := redis.NewClient(&redis.Options{
		ContextTimeoutEnabled: true, DialerRetries: 1,
		Dialer: func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Err: errno}
		},
	})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}
