package client_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/internal/weirtest"
)

func TestTop(t *testing.T) {
	c := newClient(t, weirtest.Start(t), client.Options{DenialKeys: -1})
	rule := client.FixedFirst(time.Hour, 5)
	for key, cost := range map[string]int64{"a": 5, "b": 3} {
		decide(t, c, client.Request{Rule: rule, Key: key, Cost: cost})
	}
	decide(t, c, client.Request{Rule: rule, Key: "b", Cost: 4})
	heavy, err := c.TopAdmitted(t.Context(), 10)
	require.NoError(t, err)
	require.Equal(t, []client.Heavy{{Key: "a", Units: 5}, {Key: "b", Units: 3}}, heavy)
	heavy, err = c.TopDenied(t.Context(), 1)
	require.NoError(t, err)
	require.Equal(t, []client.Heavy{{Key: "b", Units: 4}}, heavy)
	_, err = c.TopDenied(t.Context(), 0)
	require.ErrorIs(t, err, client.ErrRefused)
}

// TestGetPolicy checks that both protocols return the same policy.
func TestGetPolicy(t *testing.T) {
	s := weirtest.Start(t)
	for _, protocol := range []int{2, 3} {
		rdb := redis.NewClient(&redis.Options{Addr: s.Addr, ContextTimeoutEnabled: true, Protocol: protocol})
		defer rdb.Close()
		c := newClientOn(t, rdb, client.Options{})
		_, err := c.DeletePolicy(t.Context(), "api")
		require.NoError(t, err)
		_, err = c.SetPolicy(t.Context(), "api", client.PolicyTerms{
			Limits: []*client.Rule{client.TokenBucket(client.PerSecond(10), 20)}, Shadow: true, RetryAfter: time.Second,
			Reserved: 0.1,
			Layout:   "rl:{policy}:{key}", Report: time.Minute,
		})
		require.NoError(t, err)
		_, err = c.OverridePolicy(t.Context(), "api", "vip:*", time.Hour, client.FixedFirst(time.Hour, 1000))
		require.NoError(t, err)
		_, err = c.OverridePolicy(t.Context(), "api", "boss", 0)
		require.NoError(t, err)
		q := client.Request{Rule: client.Policy("api"), Key: "k", Cost: 18}
		decide(t, c, q)
		p, err := c.GetPolicy(t.Context(), "api")
		require.NoError(t, err)
		require.Positive(t, p.Version)
		p.Version = 0
		require.Equal(t, client.PolicyInfo{
			Name: "api", Limits: []string{"TOKENBUCKET 10/s 20"}, Shadow: true, RetryAfter: time.Second,
			Reserved: "10%", Admitted: 1,
			Layout: "rl:{policy}:{key}", Report: "1m",
			Overrides: []client.PolicyOverride{{"boss", []string{}, client.Never},
				{"vip:*", []string{"FIXED 1h 1000 FIRST"}, time.Hour}},
		}, p)

		_, err = c.SetPolicy(t.Context(), "api",
			client.PolicyTerms{Limits: []*client.Rule{client.TokenBucket(client.PerSecond(10), 20)}, Forget: true})
		require.NoError(t, err)
		require.EqualValues(t, 2, decide(t, c, q).Remaining, "a reset must clear the usage")
		_, err = c.GetPolicy(t.Context(), "no-such")
		require.ErrorIs(t, err, client.ErrRefused)
	}
}
