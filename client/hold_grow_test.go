package client_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/internal/weirtest"
)

// TestHoldsGrow extends a hold, reports what it used, and lists it among others.
func TestHoldsGrow(t *testing.T) {
	s := weirtest.Start(t)
	c := newClient(t, s, client.Options{})
	rule := budget(t, c)
	h, _, err := c.Reserve(t.Context(), client.Request{Rule: rule, Key: "k", Cost: 10, ExpireTake: true}, time.Minute)
	require.NoError(t, err)
	for range 2 {
		d, held, err := h.Extend(t.Context(), client.Extension{Number: 1, Units: 20, TTL: time.Hour})
		require.NoError(t, err)
		require.Equal(t, []int64{20, 70, 30}, []int64{d.Granted, d.Remaining, held},
			"a repeated number must count once")
	}
	d, held, err := h.Extend(t.Context(), client.Extension{Number: 2, Units: 80})
	require.NoError(t, err)
	require.False(t, d.Allowed)
	require.EqualValues(t, 30, held)
	d, held, err = h.Extend(t.Context(), client.Extension{Number: 2, Units: 80, Partial: true, TTL: time.Hour})
	require.NoError(t, err)
	require.Equal(t, []int64{70, 100}, []int64{d.Granted, held})
	_, _, err = h.Extend(t.Context(), client.Extension{Number: 4, Units: 1})
	require.ErrorIs(t, err, client.ErrRefused)
	_, _, err = h.Extend(t.Context(), client.Extension{Units: 1})
	require.ErrorIs(t, err, client.ErrBadRequest)

	left, err := h.Report(t.Context(), 40)
	require.NoError(t, err)
	require.Zero(t, left)
	list, next, err := c.Holds(t.Context(), "budget", "k", 0, 10)
	require.NoError(t, err)
	require.Zero(t, next)
	require.Len(t, list, 1)
	require.Positive(t, list[0].Ends)
	list[0].Ends = 0
	require.Equal(t, client.OpenHold{ID: h.ID(), Held: 60, Used: 40, Take: true}, list[0])
	left, err = h.Commit(t.Context(), 50)
	require.NoError(t, err)
	require.EqualValues(t, 50, left)
	_, err = h.Report(t.Context(), 51)
	require.ErrorIs(t, err, client.ErrRefused)
	_, err = h.Report(t.Context(), -1)
	require.ErrorIs(t, err, client.ErrBadRequest)

	for i := range 50 {
		q := client.Request{Rule: rule, Key: "k", ID: fmt.Sprint("h", i)}
		_, d, err := c.Reserve(t.Context(), q, time.Hour)
		require.NoError(t, err)
		require.True(t, d.Allowed)
	}
	n := 0
	for cursor, more := uint64(0), true; more; more = cursor != 0 {
		list, cursor, err = c.Holds(t.Context(), "budget", "k", cursor, 8)
		require.NoError(t, err)
		n += len(list)
	}
	require.Equal(t, 50, n)
	_, _, err = c.Holds(t.Context(), "none", "k", 0, 8)
	require.ErrorIs(t, err, client.ErrRefused)
	_, err = c.Decide(t.Context(), client.Request{Rule: rule, Key: "k", ExpireTake: true})
	require.ErrorIs(t, err, client.ErrBadRequest)
}

// TestHoldsGrowInAnOutage extends and reports holds that the local limiter made, and ones that Open granted.
func TestHoldsGrowInAnOutage(t *testing.T) {
	for _, down := range []client.Fallback{client.Local, client.Open} {
		s := weirtest.Start(t)
		c := newClient(t, s, client.Options{WhenDown: down})
		rule := budget(t, c)
		s.Stop()
		h, d, err := c.Reserve(t.Context(), client.Request{Rule: rule, Key: "k", Cost: 10}, time.Minute)
		require.NoError(t, err)
		require.True(t, d.Allowed)
		d, held, err := h.Extend(t.Context(), client.Extension{Number: 1, Units: 20})
		require.NoError(t, err)
		require.EqualValues(t, 20, d.Granted)
		left, err := h.Report(t.Context(), 25)
		require.NoError(t, err)
		if down == client.Open {
			require.Equal(t, []int64{0, -1}, []int64{held, left})
			continue
		}
		require.Equal(t, []int64{30, 20}, []int64{held, left}, "the fallback must use half of the limit")
		left, err = h.Commit(t.Context(), 26)
		require.NoError(t, err)
		require.EqualValues(t, 24, left)
	}
}
