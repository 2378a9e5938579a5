package client_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/internal/weirtest"
)

func TestQueue(t *testing.T) {
	s := weirtest.StartRealTime(t)
	c := newClient(t, s, client.Options{})
	q := client.Request{Rule: client.TokenBucket(client.Rate{Units: 1, Per: 50 * time.Millisecond}, 1), Key: "k"}
	before := time.Now()
	for range 3 {
		d, err := c.Queue(t.Context(), q, 2*time.Second)
		require.NoError(t, err)
		require.True(t, d.Allowed)
	}
	require.GreaterOrEqual(t, time.Since(before), 90*time.Millisecond, "the request must be delayed")
	q.Cost = 2
	d, err := c.Queue(t.Context(), q, time.Second)
	require.NoError(t, err)
	require.Equal(t, client.Never, d.RetryAfter, "the denial must say that no wait helps")

	slow := client.Request{Rule: client.TokenBucket(client.PerHour(1), 1), Key: "slow"}
	decide(t, c, slow)
	d, err = c.Queue(t.Context(), slow, 10*time.Millisecond)
	require.NoError(t, err)
	require.False(t, d.Allowed, "the request must be denied when its time is up")
	ctx, cancel := context.WithTimeout(t.Context(), patient+100*time.Millisecond)
	defer cancel()
	d, err = c.Queue(ctx, slow, time.Minute)
	require.NoError(t, err, "the answer must come before the context's deadline")
	require.False(t, d.Allowed)
}

func TestQueueIsBounded(t *testing.T) {
	s := weirtest.Start(t)
	c := newClient(t, s, client.Options{})
	q := client.Request{Rule: probe, Key: "k"}
	for _, longest := range []time.Duration{-1, time.Minute, 2 * time.Hour} {
		_, err := c.Queue(t.Context(), q, longest)
		require.ErrorIs(t, err, client.ErrBadRequest)
	}
	patientRedis := redis.NewClient(&redis.Options{Addr: s.Addr, ContextTimeoutEnabled: true, ReadTimeout: -1})
	defer patientRedis.Close()
	d, err := newClientOn(t, patientRedis, client.Options{}).Queue(t.Context(), q, time.Hour)
	require.NoError(t, err)
	require.True(t, d.Allowed)
	q.ID = "id"
	_, err = c.Queue(t.Context(), q, 0)
	require.ErrorIs(t, err, client.ErrBadRequest)
	q.ID = ""
	s.Stop()
	for range 3 {
		d, err = c.Queue(t.Context(), q, time.Second)
		require.NoError(t, err)
		require.Equal(t, client.FromFallback, d.Source)
	}
	require.True(t, c.Down())
}
