package systems

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/internal/weirproc"
)

// TestPublicAPILosesItsLeader kills the leader of three nodes under load. Every served request must be counted, and
// no limit may admit more than its maximum.
func TestPublicAPILosesItsLeader(t *testing.T) {
	const workers, limit = 8, 2000
	cluster := weirproc.StartCluster(t)
	limits := clusterPolicies(t, cluster, limit)
	api := startPublicAPI(t, strings.Join(cluster.Addrs(), ","), []string{publicAPIBinary(t)},
		"RATE_LIMIT_DEFAULT=1000", "RATE_LIMIT_WINDOW=3600")
	var served, denied, undecided atomic.Int64
	var all sync.WaitGroup
	killed := make(chan struct{})
	for range workers {
		all.Go(func() {
			for denied.Load() == 0 {
				switch res, _ := api.ask(http.MethodGet, "/api/users"); res.StatusCode {
				case http.StatusOK:
					if served.Add(1) == limit/4 {
						close(killed)
					}
				case http.StatusTooManyRequests:
					denied.Add(1)
				case http.StatusServiceUnavailable:
					undecided.Add(1)
					<-time.After(10 * time.Millisecond) // leave the processor to the election
				default:
					t.Error(res.Status)
					return
				}
			}
		})
	}
	<-killed
	dead := cluster.KillLeader()
	all.Wait()
	dead.Start()
	t.Logf("%d served, %d not decided in time", served.Load(), undecided.Load())
	require.LessOrEqual(t, served.Load(), int64(limit))
	require.GreaterOrEqual(t, served.Load()+undecided.Load(), int64(limit),
		"what is counted without an answer is one that was not decided in time")
	for policy, key := range map[string]string{"users-read": "ip:127.0.0.1", "ip": "ip:127.0.0.1", "service": "all"} {
		usage, err := limits.Usages(t.Context(), []client.Pair{{Policy: policy, Key: key}})
		require.NoError(t, err)
		require.NoError(t, usage[0].Err)
		require.EqualValues(t, limit, usage[0].Used, "%s: all or nothing, in each of the limits", policy)
	}
}

// clusterPolicies creates the policies of the public API at a cluster, with one limit that is reached.
func clusterPolicies(t *testing.T, cluster *weirproc.Cluster, limit int64) *client.Client {
	t.Helper()
	c, err := client.New(cluster.Nodes[0].Redis(), client.Options{WhenDown: client.Closed, Timeout: weirproc.Wait})
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	for policy, max := range map[string]int64{"users-read": 10 * limit, "ip": limit, "service": 10 * limit,
		"api-key": 10 * limit, "users-write": 1, "exports": 1} {
		_, err := c.SetPolicy(
			t.Context(), policy, client.PolicyTerms{Limits: []*client.Rule{client.Quota(client.Forever, "", max)}})
		require.NoError(t, err)
	}
	return c
}
