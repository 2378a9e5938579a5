package client_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/weirtest"
	"github.com/weir-project/weir/limiter"
)

// budget returns a policy of a hundred units, for weir and for the fallback.
func budget(t *testing.T, c *client.Client) *client.Rule {
	limit := client.FixedFirst(time.Hour, 100)
	_, err := c.SetPolicy(t.Context(), "budget", client.PolicyTerms{Limits: []*client.Rule{limit}})
	require.NoError(t, err)
	return client.Policy("budget", limit)
}

func TestHolds(t *testing.T) {
	s := weirtest.Start(t)
	c := newClient(t, s, client.Options{})
	rule := budget(t, c)
	left := func() int64 { return decide(t, c, client.Request{Rule: rule, Key: "k", Peek: true}).Remaining }

	h, d, err := c.Reserve(t.Context(), client.Request{Rule: rule, Key: "k", Cost: 70}, time.Minute)
	require.NoError(t, err)
	require.EqualValues(t, 70, d.Granted)
	require.EqualValues(t, 30, left())
	none, d, err := c.Reserve(t.Context(), client.Request{Rule: rule, Key: "k", Cost: 70}, time.Minute)
	require.NoError(t, err)
	require.Nil(t, none)
	require.Positive(t, d.RetryAfter)
	for range 2 {
		n, err := c.Hold(h.ID()).Commit(t.Context(), 20)
		require.NoError(t, err)
		require.EqualValues(t, 80, n, "a repeated hold must count once")
	}
	cancelled, err := h.Cancel(t.Context())
	require.NoError(t, err)
	require.False(t, cancelled, "a settled hold must not be cancelled")

	h, _, err = c.Reserve(t.Context(), client.Request{Rule: rule, Key: "k", Cost: 80}, time.Minute)
	require.NoError(t, err)
	require.NotNil(t, h, "a denied hold must not be remembered, because holds expire")
	cancelled, err = h.Cancel(t.Context())
	require.NoError(t, err)
	require.True(t, cancelled)
	require.EqualValues(t, 80, left())
	_, _, err = c.Reserve(t.Context(), client.Request{Rule: rule, Key: "k", Cost: 80}, time.Minute)
	require.NoError(t, err)
	s.Advance(2 * time.Minute)
	require.EqualValues(t, 80, left(), "the hold must have expired")

	_, err = c.Hold("no-such").Commit(t.Context(), 1)
	require.ErrorIs(t, err, client.ErrRefused)
	_, err = h.Commit(t.Context(), -1)
	require.ErrorIs(t, err, client.ErrBadRequest)
	for _, bad := range []client.Request{{Rule: probe, Key: "k"}, {Rule: rule, Key: "k", Peek: true},
		{Rule: rule, Key: "k", Partial: true}} {
		_, _, err = c.Reserve(t.Context(), bad, time.Minute)
		require.ErrorIs(t, err, client.ErrBadRequest)
	}
	_, _, err = c.Reserve(t.Context(), client.Request{Rule: rule, Key: "k"}, 0)
	require.ErrorIs(t, err, client.ErrBadRequest)
}

func TestHoldsOfSeveralPolicies(t *testing.T) {
	c := newClient(t, weirtest.Start(t), client.Options{})
	rule := budget(t, c)
	_, err := c.SetPolicy(
		t.Context(), "org", client.PolicyTerms{Limits: []*client.Rule{client.FixedFirst(time.Hour, 10)}, Reserved: 0.5})
	require.NoError(t, err)
	q := client.Request{Rule: rule, Key: "k", Also: []client.Pair{{Policy: "org", Key: "acme"}}, Cost: 8}
	h, _, err := c.Reserve(t.Context(), q, time.Minute)
	require.NoError(t, err)
	require.Nil(t, h, "half of the limit must stay reserved")
	q.High = true
	h, _, err = c.Reserve(t.Context(), q, time.Minute)
	require.NoError(t, err)
	left, err := h.Commit(t.Context(), 12)
	require.NoError(t, err)
	require.Zero(t, left, "more than the limit has been used")
}

// TestHoldsHappenOnce checks that a hold whose answer was lost is requested again and counts once.
func TestHoldsHappenOnce(t *testing.T) {
	s := weirtest.Start(t)
	c := newClient(t, s, client.Options{})
	rule := budget(t, c)
	lost := 0
	s.Instead(func(ops []engine.Op) (bool, error) {
		if lost++; lost%2 == 1 {
			return true, limiter.ErrUnknownOutcome
		}
		return true, nil
	})
	h, d, err := c.Reserve(t.Context(), client.Request{Rule: rule, Key: "k", Cost: 70}, time.Minute)
	require.NoError(t, err)
	require.Equal(t, client.FromServer, d.Source)
	left, err := h.Commit(t.Context(), 20)
	require.NoError(t, err)
	require.EqualValues(t, 80, left)
	require.Equal(t, 4, lost)
}

func TestHoldsInAnOutage(t *testing.T) {
	for name, c := range map[string]struct {
		choice client.Fallback
		held   bool
		left   int64
	}{"open": {client.Open, true, -1}, "closed": {client.Closed, false, 0}, "local": {client.Local, true, 45}} {
		t.Run(name, func(t *testing.T) {
			s := weirtest.Start(t)
			limits := newClient(t, s, client.Options{WhenDown: c.choice})
			rule := budget(t, limits)
			s.Stop()
			h, d, err := limits.Reserve(t.Context(), client.Request{Rule: rule, Key: "k", Cost: 40}, time.Minute)
			require.NoError(t, err)
			require.Equal(t, client.FromFallback, d.Source)
			require.Equal(t, c.held, h != nil)
			if h == nil {
				return
			}
			left, err := h.Commit(t.Context(), 5)
			require.NoError(t, err)
			require.Equal(t, c.left, left, "the fallback must use half of the limit")
			h, _, err = limits.Reserve(t.Context(), client.Request{Rule: rule, Key: "k", Cost: 45}, time.Minute)
			require.NoError(t, err)
			cancelled, err := h.Cancel(t.Context())
			require.NoError(t, err)
			require.True(t, cancelled)
		})
	}
}
