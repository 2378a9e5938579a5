package client_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/internal/weirtest"
)

// spend takes units under a policy that reports two thresholds.
func spend(t *testing.T, rdb *redis.Client, key string, units int) {
	ctx := t.Context()
	require.NoError(t, rdb.Do(ctx, "RL.POLICY", "SET", "budget", "LIMIT", "FIXED", "FOREVER", 100,
		"NOTIFY", "50%", "80%").Err())
	require.NoError(t, rdb.Do(ctx, "RL.CHECK", "budget", key, "COST", units, "ID", "r1").Err())
}

// TestEventsAreRead checks the fields of events, and the error of a cursor that the log does not have.
func TestEventsAreRead(t *testing.T) {
	s := weirtest.Start(t)
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr})
	defer rdb.Close()
	spend(t, rdb, "acme", 85)
	c := newClient(t, s, client.Options{WhenDown: client.Closed})
	events, err := c.Events(t.Context(), client.Event{Cursor: 1}, 10)
	require.NoError(t, err)
	require.Len(t, events, 1)
	last := events[0]
	require.False(t, last.At.IsZero())
	events[0].At = time.Time{}
	require.Equal(t, client.Event{Cursor: 2, Kind: "threshold", Policy: "budget", Key: "acme", ID: "r1", Share: 80,
		Amount: 85, Used: 85, Limit: 100}, events[0])
	none, err := c.Events(t.Context(), last, 10)
	require.NoError(t, err)
	require.Empty(t, none)
	last.At = last.At.Add(time.Second)
	_, err = c.Events(t.Context(), last, 10)
	require.ErrorIs(t, err, client.ErrRefused)
	require.ErrorContains(t, err, "another log")
	_, err = c.Events(t.Context(), client.Event{Cursor: 3}, 10)
	require.ErrorIs(t, err, client.ErrRefused)
	require.ErrorContains(t, err, "EVENTSGONE")
	_, err = c.Events(t.Context(), client.Event{Cursor: 1 << 60}, 10)
	require.ErrorIs(t, err, client.ErrBadRequest)
}

// TestAPolicyTellsEvents checks Notify and Record of a policy that a program sets.
func TestAPolicyTellsEvents(t *testing.T) {
	c := newClient(t, weirtest.Start(t), client.Options{WhenDown: client.Closed})
	ctx, month := t.Context(), client.Quota(client.Month, "Europe/Berlin", 100)
	_, err := c.SetPolicy(ctx, "budget", client.PolicyTerms{Record: true,
		Limits: []*client.Rule{month.Notify(50, 80), client.FixedFirst(time.Hour, 1000).Notify(7)}})
	require.NoError(t, err)
	_, err = c.OverridePolicy(ctx, "budget", "big", 0, client.Fixed(time.Hour, 1000).Notify(90))
	require.NoError(t, err)
	info, err := c.GetPolicy(ctx, "budget")
	require.NoError(t, err)
	require.True(t, info.Record)
	require.Equal(t, []string{"FIXED MONTH 100 TZ Europe/Berlin NOTIFY 50% 80%", "FIXED 1h 1000 FIRST NOTIFY 7%"},
		info.Limits)
	hold, d, err := c.Reserve(ctx, client.Request{Rule: client.Policy("budget"), Key: "acme", Cost: 60}, time.Minute)
	require.NoError(t, err)
	require.True(t, d.Allowed)
	_, err = hold.Commit(ctx, 85)
	require.NoError(t, err)
	_, err = c.Decide(ctx, client.Request{Rule: client.Policy("budget"), Key: "big", Cost: 950})
	require.NoError(t, err)
	events, err := c.Events(ctx, client.Event{}, 10)
	require.NoError(t, err)
	var got []string
	for _, e := range events {
		got = append(got, fmt.Sprint(e.Kind, " ", e.Key, " ", e.Share, " ", e.Amount))
	}
	require.Equal(t, []string{"threshold acme 50 60", "threshold acme 80 25", "threshold acme 7 25",
		"settled acme 0 85", "threshold big 90 950"}, got)

	for _, r := range []*client.Rule{month.Notify(), month.Notify(80, 50), month.Notify(101),
		client.Sliding(time.Hour, 10).Notify(50), client.Policy("budget").Notify(50),
		client.Slots(1, time.Minute).Notify(50), client.Fixed(time.Hour, -1).Notify(50)} {
		require.ErrorIs(t, r.Err(), client.ErrBadRule)
	}
	require.NoError(t, month.Err())
	_, err = c.Decide(ctx, client.Request{Rule: month.Notify(50), Key: "k"})
	require.ErrorIs(t, err, client.ErrBadRequest)
}

// TestAHoldThatExpiresIsRead checks that a server tells the end of a hold that nobody commits.
func TestAHoldThatExpiresIsRead(t *testing.T) {
	s := weirtest.Start(t)
	c := newClient(t, s, client.Options{WhenDown: client.Closed})
	limit := client.Quota(client.Forever, "", 100)
	_, err := c.SetPolicy(t.Context(), "budget", client.PolicyTerms{Limits: []*client.Rule{limit}, Record: true})
	require.NoError(t, err)
	h, _, err := c.Reserve(t.Context(), client.Request{Rule: client.Policy("budget", limit), Key: "acme", Cost: 30,
		ExpireTake: true}, time.Minute)
	require.NoError(t, err)
	s.Advance(2 * time.Minute)
	var events []client.Event
	require.Eventually(t, func() bool {
		events, err = c.Events(t.Context(), client.Event{}, 10)
		return err != nil || len(events) > 0
	}, weirtest.Wait, time.Millisecond)
	require.NoError(t, err)
	events[0].At = time.Time{}
	require.Equal(t, []client.Event{{Cursor: 1, Kind: "expired", Policy: "budget", Key: "acme", ID: h.ID(), Amount: 30,
		Used: 30, Limit: 100}}, events)
}

// TestStockClientsReadEvents checks that go-redis reads events as a stream in both protocols.
func TestStockClientsReadEvents(t *testing.T) {
	for _, protocol := range []int{2, 3} {
		rdb := redis.NewClient(&redis.Options{Addr: weirtest.Start(t).Addr, Protocol: protocol})
		defer rdb.Close()
		ctx, cancel := context.WithTimeout(t.Context(), weirtest.Wait)
		defer cancel()
		_, err := rdb.XRead(ctx, &redis.XReadArgs{Streams: []string{"weir:events", "0"}, Block: -1}).Result()
		require.ErrorIs(t, err, redis.Nil)
		spend(t, rdb, "acme", 85)
		got, err := rdb.XRead(ctx, &redis.XReadArgs{Streams: []string{"weir:events", "0"}, Count: 1, Block: 0}).Result()
		require.NoError(t, err)
		first := got[0]
		require.Equal(t, "weir:events", first.Stream)
		require.Equal(t, "acme", first.Messages[0].Values["key"])
		require.Equal(t, "50", first.Messages[0].Values["share"])
		next, err := rdb.XRead(ctx, &redis.XReadArgs{Streams: []string{"weir:events", first.Messages[0].ID}, Count: 1,
			Block: -1}).Result()
		require.NoError(t, err)
		require.Equal(t, "80", next[0].Messages[0].Values["share"])
		all, err := rdb.XRange(ctx, "weir:events", "-", "+").Result()
		require.NoError(t, err)
		require.Len(t, all, 2)
		require.Equal(t, next[0].Messages[0].ID, all[1].ID)
		n, err := rdb.XLen(ctx, "weir:events").Result()
		require.NoError(t, err)
		require.EqualValues(t, 2, n)
	}
}
