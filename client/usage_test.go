package client_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/internal/weirtest"
)

func TestUsages(t *testing.T) {
	s := weirtest.Start(t)
	c := newClient(t, s, client.Options{})
	_, err := c.SetPolicy(t.Context(), "api",
		client.PolicyTerms{Limits: []*client.Rule{client.FixedFirst(time.Hour, 10), client.FixedFirst(time.Minute, 4)}})
	require.NoError(t, err)
	decide(t, c, client.Request{Rule: client.Policy("api"), Key: "a", Cost: 3})
	decide(t, c, client.Request{Rule: client.Policy("api"), Key: "full", Cost: 4})
	before := c.Stats()
	of := []client.Pair{{Policy: "api", Key: "a"}, {Policy: "none", Key: "a"}, {Policy: "api", Key: "idle"},
		{Policy: "api", Key: "full"}}
	all, err := c.Usages(t.Context(), of)
	require.NoError(t, err)
	require.Equal(t, client.Usage{Pair: of[0], Used: 3, Limit: 4}, all[0])
	require.ErrorIs(t, all[1].Err, client.ErrRefused)
	require.Equal(t, client.Usage{Pair: of[2], Used: 0, Limit: 4}, all[2])
	require.Equal(t, client.Usage{Pair: of[3], Used: 4, Limit: 4}, all[3])
	require.Equal(t, before.Admitted+before.Denied, c.Stats().Admitted+c.Stats().Denied,
		"a look must not count as a request")
	all, err = c.Usages(t.Context(), nil)
	require.NoError(t, err)
	require.Empty(t, all)
	require.EqualValues(t, 3, used(t, c, "policy|api|0|a"), "a look must not take units")

	s.Stop()
	for range 3 { // until the circuit breaker is open
		_, err = c.Usages(t.Context(), of)
		require.Error(t, err)
	}
	_, err = c.Usages(t.Context(), of)
	require.ErrorIs(t, err, client.ErrUnavailable)
}

// TestTimes checks that every decision has a latency, also without a round trip.
func TestTimes(t *testing.T) {
	s := weirtest.Start(t)
	c := newClient(t, s, client.Options{})
	require.Zero(t, c.Times().Count)
	rule := client.FixedFirst(time.Hour, 1)
	for range 3 { // admitted, denied, and denied from memory
		decide(t, c, client.Request{Rule: rule, Key: "k"})
	}
	_, err := c.DecideAll(
		t.Context(), []client.Request{{Rule: rule, Key: "a"}, {Rule: rule, Key: "k"}, {Rule: rule, Key: "b"}})
	require.NoError(t, err)
	times := c.Times()
	require.EqualValues(t, 6, times.Count)
	require.Positive(t, times.Sum)
	require.GreaterOrEqual(t, times.Within[1e-6], uint64(2), "denials from memory must be fast")
	require.EqualValues(t, c.Stats().Admitted+c.Stats().Denied, times.Count)
}
