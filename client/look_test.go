package client_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/internal/weirtest"
)

// TestTop counts even units: where a minute ends in between, each count is half.
func TestTop(t *testing.T) {
	c := newClient(t, weirtest.Start(t), client.Options{DenialKeys: -1})
	rule := client.FixedFirst(time.Hour, 10)
	for key, cost := range map[string]int64{"a": 10, "b": 6} {
		decide(t, c, client.Request{Rule: rule, Key: key, Cost: cost})
	}
	decide(t, c, client.Request{Rule: rule, Key: "b", Cost: 8})
	heavy, err := c.TopAdmitted(t.Context(), 10)
	require.NoError(t, err)
	requireHeavy(t, heavy, client.Heavy{Key: "a", Units: 10}, client.Heavy{Key: "b", Units: 6})
	heavy, err = c.TopDenied(t.Context(), 1)
	require.NoError(t, err)
	requireHeavy(t, heavy, client.Heavy{Key: "b", Units: 8})
	_, err = c.TopDenied(t.Context(), 0)
	require.ErrorIs(t, err, client.ErrRefused)
}

func requireHeavy(t *testing.T, heavy []client.Heavy, want ...client.Heavy) {
	t.Helper()
	require.Len(t, heavy, len(want))
	for i, h := range heavy {
		half := want[i]
		half.Units /= 2
		require.Contains(t, []client.Heavy{want[i], half}, h)
	}
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
