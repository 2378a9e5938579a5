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
				if err := c.Wait(t.Context(), client.Request{Rule: all, Key: "bot"}, client.Request{Rule: chat, Key: key}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	sending.Wait()
	require.GreaterOrEqual(t, time.Since(start), (each-1)*20*time.Millisecond, "no faster than a chat may")
	used, err := c.Inspect(t.Context(), "bot")
	require.NoError(t, err)
	require.LessOrEqual(t, used.Used, int64(2*each))
}

func TestWaitGivesUpAtOnce(t *testing.T) {
	s := weirtest.Start(t)
	c := newClient(t, s, client.Options{})
	hourly, daily := client.TokenBucket(client.PerHour(1), 1), client.TokenBucket(client.Rate{Units: 1, Per: 24 * time.Hour}, 5)
	require.NoError(t, c.Wait(t.Context(), client.Request{Rule: hourly, Key: "hourly"}))
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Minute) // less than an hour, more than an hour less as much
	defer cancel()
	err := c.Wait(ctx, client.Request{Rule: daily, Key: "daily"}, client.Request{Rule: hourly, Key: "hourly"})
	require.ErrorIs(t, err, client.ErrDenied)
	info, err := c.Inspect(t.Context(), "daily")
	require.NoError(t, err)
	require.Zero(t, info.Used, "what one admits is given back when another denies")
	require.ErrorIs(t, c.Wait(ctx, client.Request{Rule: hourly, Key: "k", Cost: 2}), client.ErrDenied, "it never fits")
	require.ErrorIs(t, c.Wait(ctx, client.Request{Rule: client.Fixed(time.Hour, 1), Key: "hourly"}), client.ErrRefused)
}

// A caller that goes away while it is held gives its place back.
func TestWaitCancelled(t *testing.T) {
	s := weirtest.Start(t)
	c := newClient(t, s, client.Options{})
	rule := client.TokenBucket(client.Rate{Units: 1, Per: 30 * time.Second}, 1)
	require.NoError(t, c.Wait(t.Context(), client.Request{Rule: rule, Key: "k"}))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Wait(ctx, client.Request{Rule: rule, Key: "k"}) }()
	used := func() int64 {
		info, err := c.Inspect(t.Context(), "k")
		require.NoError(t, err)
		return info.Used
	}
	require.Eventually(t, func() bool { return used() == 2 }, weirtest.Wait, time.Millisecond)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	require.EqualValues(t, 1, used())
}
