package client_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/internal/weirtest"
)

func TestWaitPaces(t *testing.T) {
	s := weirtest.StartRealTime(t)
	c := newClient(t, s, client.Options{})
	all, chat := client.TokenBucket(client.PerSecond(200), 1), client.TokenBucket(client.PerSecond(50), 1)
	var sending sync.WaitGroup
	const each = 3
	start := time.Now()
	for _, key := range []string{"chat:1", "chat:2"} {
		sending.Go(func() {
			for range each {
				if err := c.Wait(t.Context(), client.Request{Rule: all, Key: "bot"},
					client.Request{Rule: chat, Key: key}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	sending.Wait()
	require.GreaterOrEqual(t, time.Since(start), (each-1)*20*time.Millisecond,
		"messages must not be faster than the limit")
	require.LessOrEqual(t, used(t, c, "bot"), int64(2*each))
}

func TestWaitGivesUpAtOnce(t *testing.T) {
	s := weirtest.Start(t)
	c := newClient(t, s, client.Options{})
	hourly, daily := client.TokenBucket(client.PerHour(1), 1),
		client.TokenBucket(client.Rate{Units: 1, Per: 24 * time.Hour}, 5)
	require.NoError(t, c.Wait(t.Context(), client.Request{Rule: hourly, Key: "hourly"}))
	// The next hourly unit comes after this deadline.
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Minute)
	defer cancel()
	err := c.Wait(ctx, client.Request{Rule: daily, Key: "daily"}, client.Request{Rule: hourly, Key: "hourly"})
	require.ErrorIs(t, err, client.ErrDenied)
	require.Zero(t, used(t, c, "daily"), "a unit must be returned if another request of the wait is denied")
	require.ErrorIs(t, c.Wait(ctx, client.Request{Rule: hourly, Key: "k", Cost: 2}), client.ErrDenied,
		"a request that never fits must be denied")
	require.ErrorIs(t, c.Wait(ctx, client.Request{Rule: client.Fixed(time.Hour, 1), Key: "hourly"}), client.ErrRefused)
}

// TestWaitCancelled checks that Wait gives the reserved units back when its context is cancelled.
func TestWaitCancelled(t *testing.T) {
	s := weirtest.Start(t)
	c := newClient(t, s, client.Options{})
	rule := client.TokenBucket(client.Rate{Units: 1, Per: 30 * time.Second}, 1)
	require.NoError(t, c.Wait(t.Context(), client.Request{Rule: rule, Key: "k"}))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Wait(ctx, client.Request{Rule: rule, Key: "k"}) }()
	require.Eventually(t, func() bool { return used(t, c, "k") == 2 }, weirtest.Wait, time.Millisecond)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	require.EqualValues(t, 1, used(t, c, "k"))
}

// TestWaitOutlastsAnOutage checks that Wait keeps waiting while the fallback denies, because weir may be reached again
// at any moment.
func TestWaitOutlastsAnOutage(t *testing.T) {
	for name, o := range map[string]client.Options{
		"closed": {WhenDown: client.Closed}, "local": {WhenDown: client.Local, Instances: 1000},
	} {
		for what, q := range map[string]client.Request{
			"a bucket":      {Rule: client.TokenBucket(client.PerHour(100), 100), Cost: 2},
			"a window":      {Rule: client.FixedFirst(time.Hour, 100), Cost: 2},
			"one at a time": {Rule: client.FixedFirst(time.Hour, 100)},
		} {
			t.Run(name+" "+what, func(t *testing.T) {
				s := weirtest.Start(t)
				c := newClient(t, s, o)
				s.Stop()
				q.Key = "k"
				for !c.Down() {
					decide(t, c, q)
				}
				ctx, cancel := context.WithTimeout(t.Context(), weirtest.Wait)
				defer cancel()
				ended := make(chan error, 1)
				before := c.Stats().FromFallback
				go func() { ended <- c.Wait(ctx, q) }()
				require.Eventually(t, func() bool { return c.Stats().FromFallback > before }, weirtest.Wait,
					time.Millisecond)
				s.Start()
				require.NoError(t, <-ended)
			})
		}
	}
}

// TestWaitTakesNoID checks that Wait refuses a request with an ID. After a refund, a repeated ID would get the first
// answer and take nothing.
func TestWaitTakesNoID(t *testing.T) {
	c := newClient(t, weirtest.Start(t), client.Options{})
	require.ErrorIs(t, c.Wait(t.Context(), client.Request{Rule: probe, Key: "k", ID: "id"}), client.ErrBadRequest)
}
