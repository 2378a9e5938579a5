package systems

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/weirproc"
)

// TestWebsiteOnACluster kills the leader of three nodes while two instances of the website use up one bucket. One
// instance knows only a follower, which forwards. The other one is a cluster client of all nodes. Both continue, and
// together they never admit more than the bucket holds.
func TestWebsiteOnACluster(t *testing.T) {
	need(t, "on Debian: apt install default-jdk-headless maven", "java", "mvn")
	const capacity, workers = 400, 4
	c := weirproc.StartCluster(t)
	leader, follower := c.Leader(), c.Nodes[0]
	if follower == leader {
		follower = c.Nodes[1]
	}
	settings := []string{"aquastream.rate-limit.fail-open=false", "aquastream.rate-limit.limits.default.capacity=400",
		"aquastream.rate-limit.limits.default.refill-tokens=1", "aquastream.rate-limit.limits.default.refill-period=1d"}
	one := javaWebsite(t, follower.Addr, append(settings, "spring.data.redis.timeout=2s")...)
	all := javaWebsite(t, follower.Addr, append(settings, "spring.data.redis.timeout=2s",
		"spring.data.redis.cluster.nodes="+strings.Join(c.Addrs(), ","),
		"spring.data.redis.lettuce.cluster.refresh.adaptive=true",
		"spring.data.redis.lettuce.cluster.refresh.period=1s")...)

	var admitted, unanswered atomic.Int64
	var work sync.WaitGroup
	halfway := make(chan struct{})
	for i := range 2 * workers {
		w := []*website{one, all}[i%2]
		work.Go(func() {
			for {
				a, err := w.send(from("192.0.2.1", "GET", websiteUser))
				switch {
				case err != nil:
					t.Error(err)
					return
				case a.status == 200:
					if admitted.Add(1) == capacity/2 {
						close(halfway)
					}
				case a.status == 503:
					unanswered.Add(1)
				default:
					require.Equal(t, 429, a.status)
					return
				}
			}
		})
	}
	<-halfway
	killed := time.Now()
	c.KillLeader()
	c.Leader()
	t.Logf("a new leader after %v", time.Since(killed))
	work.Wait()
	t.Logf("%d admitted of %d, %d requests got 503 meanwhile", admitted.Load(), capacity, unanswered.Load())
	require.LessOrEqual(t, admitted.Load(), int64(capacity))
	require.GreaterOrEqual(t, admitted.Load()+unanswered.Load(), int64(capacity), "a token goes only to a request")
	one.says("401 9", from("192.0.2.2", "POST", websiteLogin))
	all.says("401 9", from("192.0.2.3", "POST", websiteLogin))
}
