package client_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/internal/weirtest"
)

// override gives other limits to the keys of a policy that match a pattern.
func override(t testing.TB, rdb *redis.Client, name, pattern string, words ...any) {
	t.Helper()
	require.NoError(t, rdb.Do(t.Context(), append([]any{"RL.POLICY", "OVERRIDE", name, pattern}, words...)...).Err())
}

// TestGetPolicy checks that both protocols return the same policy.
func TestGetPolicy(t *testing.T) {
	s := weirtest.Start(t)
	for _, protocol := range []int{2, 3} {
		rdb := redis.NewClient(&redis.Options{Addr: s.Addr, ContextTimeoutEnabled: true, Protocol: protocol})
		defer rdb.Close()
		c := newClientOn(t, rdb, client.Options{})
		require.NoError(t, rdb.Do(t.Context(), "RL.POLICY", "DEL", "api").Err())
		_, err := c.SetPolicy(t.Context(), "api", client.PolicyTerms{
			Limits: []*client.Rule{client.TokenBucket(client.PerSecond(10), 20)}, Shadow: true, RetryAfter: time.Second,
			Reserved: 0.1,
			Layout:   "rl:{policy}:{key}", Report: time.Minute,
		})
		require.NoError(t, err)
		override(t, rdb, "api", "vip:*", "LIMIT", "FIXED", "1h", 1000, "FIRST", "TTL", "1h")
		override(t, rdb, "api", "boss", "UNLIMITED")
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
