package client_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/internal/weirtest"
)

// TestClusterClientFindsTheNewLeader checks that the client of a cluster looks for a new leader when it loses the old
// one. go-redis alone does so once a minute, which is longer than this test waits.
func TestClusterClientFindsTheNewLeader(t *testing.T) {
	first, second := weirtest.Start(t), weirtest.Start(t)
	var leader atomic.Pointer[string]
	leader.Store(&first.Addr)
	rdb := redis.NewClusterClient(&redis.ClusterOptions{
		ContextTimeoutEnabled: true, DialerRetries: 1,
		ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
			return []redis.ClusterSlot{{Start: 0, End: 16383, Nodes: []redis.ClusterNode{{Addr: *leader.Load()}}}}, nil
		},
	})
	t.Cleanup(func() { _ = rdb.Close() })
	c := newClientOn(t, rdb, client.Options{})
	q := client.Request{Rule: probe, Key: "k"}
	require.Equal(t, client.FromServer, decide(t, c, q).Source)
	first.Stop()
	leader.Store(&second.Addr)
	require.Eventually(t, func() bool { return decide(t, c, q).Source == client.FromServer },
		weirtest.Wait, weirtest.Wait/1000)
}
