package client_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/internal/weirtest"
)

// known waits until a client has fetched n policies.
func known(t *testing.T, c *client.Client, n int64) {
	t.Helper()
	require.Eventually(t, func() bool { return c.Stats().Policies == n }, weirtest.Wait, time.Millisecond)
}

// TestPoliciesAreFetched checks that a used policy and its overrides decide in an outage at their fraction. The
// program never states the limits.
func TestPoliciesAreFetched(t *testing.T) {
	s := weirtest.Start(t)
	c := newClient(t, s, client.Options{WhenDown: client.Local})
	set := func(name string, terms client.PolicyTerms) {
		_, err := c.SetPolicy(t.Context(), name, terms)
		require.NoError(t, err)
	}
	set("orders", client.PolicyTerms{Limits: []*client.Rule{client.TokenBucket(client.PerSecond(10), 50)},
		Layout: "rl:{policy}:{key}", Report: time.Second})
	set("one", client.PolicyTerms{Limits: []*client.Rule{client.FixedFirst(time.Hour, 1)}})
	set("off", client.PolicyTerms{Limits: []*client.Rule{client.FixedFirst(time.Hour, 1)}, Disabled: true})
	set("kept", client.PolicyTerms{Limits: []*client.Rule{client.FixedFirst(time.Hour, 20)}, Reserved: 0.5,
		RetryAfter: time.Minute})
	for pattern, limits := range map[string][]*client.Rule{"gold:*": {client.FixedFirst(time.Hour, 200)},
		"probe": nil} {
		_, err := c.OverridePolicy(t.Context(), "orders", pattern, 0, limits...)
		require.NoError(t, err)
	}
	use := func(name string) { decide(t, c, client.Request{Rule: client.Policy(name), Key: "first"}) }
	use("orders")
	decide(t, c, client.Request{Rule: client.Policy("one"), Key: "k",
		Also: []client.Pair{{Policy: "off", Key: "k"}, {Policy: "kept", Key: "k"}}})
	known(t, c, 4)
	s.Stop()
	admitted := func(q client.Request, times int) (n int) {
		for range times {
			d := decide(t, c, q)
			require.Equal(t, client.FromFallback, d.Source)
			if d.Allowed {
				n++
			} else {
				require.Positive(t, d.RetryAfter)
			}
		}
		return n
	}
	require.EqualValues(t, 5, decide(t, c, client.Request{Rule: client.Policy("orders"), Key: "second"}).Limit,
		"the decision must report the rate")
	ask := func(policy, key string) client.Request { return client.Request{Rule: client.Policy(policy), Key: key} }
	require.GreaterOrEqual(t, admitted(ask("orders", "192.0.2.1"), 60), 25)
	require.Equal(t, 100, admitted(ask("orders", "gold:7"), 120), "the override must apply")
	require.Equal(t, 120, admitted(ask("orders", "probe"), 120), "an override without limits must admit everything")
	require.Equal(t, 1, admitted(ask("one", "a"), 5), "at least one unit must be admitted")
	require.Equal(t, 5, admitted(ask("off", "a"), 5))
	require.Equal(t, 5, admitted(ask("kept", "a"), 20), "half of the fraction must stay reserved")
	high := ask("kept", "a")
	high.High = true
	require.Equal(t, 5, admitted(high, 20))
	require.GreaterOrEqual(t, decide(t, c, ask("kept", "a")).RetryAfter, time.Minute)
	require.Zero(t, admitted(ask("unknown", "a"), 5), "a policy that was never used must be denied")
}

// TestGivenRulesAreNotFetched checks that rules of the program take precedence over policies of weir.
func TestGivenRulesAreNotFetched(t *testing.T) {
	s := weirtest.Start(t)
	c := newClient(t, s, client.Options{WhenDown: client.Local})
	for _, name := range []string{"fetched", "given"} {
		_, err := c.SetPolicy(
			t.Context(), name, client.PolicyTerms{Limits: []*client.Rule{client.FixedFirst(time.Hour, 100)}})
		require.NoError(t, err)
	}
	c.StandIn(client.Policy("fetched"), client.Policy("given", client.FixedFirst(time.Hour, 4)))
	q := client.Request{Rule: client.Policy("fetched"), Key: "k", Also: []client.Pair{{Policy: "given", Key: "k"}}}
	known(t, c, 1)
	decide(t, c, q)
	s.Stop()
	require.True(t, decide(t, c, q).Allowed)
	require.True(t, decide(t, c, q).Allowed)
	require.False(t, decide(t, c, q).Allowed)
	require.EqualValues(t, 1, c.Stats().Policies)
}
