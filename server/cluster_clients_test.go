package server

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	weirclient "github.com/weir-project/weir/client"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/servertest"
	"github.com/weir-project/weir/server/service"
)

// The tests below run weir's own client against three servers whose leader changes. With MOVED a client must follow the
// leader at once. With forwarding it may stay, and gets its answers. server/clienttest has the other clients.

// clusterCaller is a client that was given the address of one node only.
type clusterCaller struct {
	do       func(ctx context.Context, args ...string) ([]int64, error)
	pipeline func(ctx context.Context, n int, args ...string) error
	close    func()
}

// dialWeirCluster returns a clusterCaller with weir's own client. Each call must have the form that followTheLeader
// uses.
func dialWeirCluster(t *testing.T, addr string) clusterCaller {
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{addr}, ContextTimeoutEnabled: true})
	c, err := weirclient.New(rdb, weirclient.Options{WhenDown: weirclient.Closed, Timeout: servertest.Patience})
	require.NoError(t, err)
	request := func(args []string) weirclient.Request {
		return weirclient.Request{Rule: weirclient.Quota(weirclient.Forever, "", 1000), Key: args[1],
			Peek: len(args) > 4}
	}
	return clusterCaller{
		do: func(ctx context.Context, args ...string) ([]int64, error) {
			d, err := c.Decide(ctx, request(args))
			if err == nil && d.Source != weirclient.FromServer {
				err = limiter.ErrClusterDown
			}
			reset := int64(d.ResetAfter)
			if d.ResetAfter == weirclient.Never {
				reset = -1
			}
			return []int64{1, d.Remaining, int64(d.RetryAfter), reset, d.Limit}, err
		},
		pipeline: func(ctx context.Context, n int, args ...string) error {
			ds, err := c.DecideAll(ctx, slices.Repeat([]weirclient.Request{request(args)}, n))
			for _, d := range ds {
				assert.Equal(t, weirclient.FromServer, d.Source)
			}
			return err
		},
		close: func() {
			assert.NoError(t, c.Close())
			assert.NoError(t, rdb.Close())
		},
	}
}

func TestClusterClientsFollowTheLeader(t *testing.T) {
	for _, redirect := range []string{service.RedirectMoved, service.RedirectForward} {
		t.Run(redirect, func(t *testing.T) { followTheLeader(t, redirect) })
	}
}

func followTheLeader(t *testing.T, redirect string) {
	f := servertest.NewFakeCluster()
	nodes := startCluster(t, f, Config{Redirect: redirect})
	ctx, cancel := context.WithTimeout(t.Context(), servertest.Patience)
	defer cancel()
	c := dialWeirCluster(t, f.Addr("b"))
	defer c.close()

	left := int64(1000)
	calls := func(leader string) {
		t.Helper()
		before := nodes[leader].Decided.Load()
		for range 10 {
			left--
			reply, err := c.do(ctx, "RL.FIXED", "k", "FOREVER", "1000")
			require.NoError(t, err)
			require.Equal(t, []int64{1, left, 0, -1, 1000}, reply)
		}
		require.NoError(t, c.pipeline(ctx, 20, "RL.FIXED", "k", "FOREVER", "1000"))
		left -= 20
		require.Greater(t, nodes[leader].Decided.Load(), before+10, "at the leader")
	}
	calls("a")
	require.Zero(t, nodes["b"].Decided.Load()+nodes["c"].Decided.Load(), "nothing but the leader is asked")

	f.Lead("c")
	if redirect == service.RedirectForward {
		_, err := c.do(ctx, "RL.FIXED", "other", "FOREVER", "1000")
		require.NoError(t, err, "whoever is asked")
		return
	}
	calls("c")
	require.Zero(t, nodes["b"].Decided.Load())
	f.Lead("")
	time.AfterFunc(200*time.Millisecond, func() { f.Lead("b") })
	require.Eventually(t, func() bool {
		reply, err := c.do(ctx, "RL.FIXED", "k", "FOREVER", "1000", "COST", "0")
		return err == nil && reply[1] == left
	}, servertest.Patience, 20*time.Millisecond, "the client does not find the new leader")
	calls("b")
}

// TestClusterClientsOnSeveralGroups checks a client against nodes that lead some ranges of slots and follow in others.
// Each call must reach the leader of its key's group, also after a change of leaders.
func TestClusterClientsOnSeveralGroups(t *testing.T) {
	f := servertest.NewFakeCluster()
	f.Split("a", "b", "c", "a")
	nodes := startCluster(t, f, Config{Redirect: service.RedirectMoved})
	ctx, cancel := context.WithTimeout(t.Context(), servertest.Patience)
	defer cancel()
	c := dialWeirCluster(t, f.Addr("b"))
	defer c.close()

	left := map[string]int64{}
	call := func(key string) {
		t.Helper()
		reply, err := c.do(ctx, "RL.FIXED", key, "FOREVER", "1000")
		require.NoError(t, err)
		left[key]++
		require.Equal(t, []int64{1, 1000 - left[key], 0, -1, 1000}, reply)
	}
	decided := func() (all [3]int64) {
		for i, id := range []string{"a", "b", "c"} {
			all[i] = nodes[id].Decided.Load()
		}
		return all
	}
	for _, leaders := range [][]string{{"a", "b", "c", "a"}, {"c", "c", "b", "a"}, {"b", "b", "b", "b"}} {
		f.Split(leaders...)
		for i, key := range []string{"hello", "bar", "foo", "x"} { // of the groups 0 to 3
			call(key) // it may follow a redirect
			before := decided()
			for range 10 {
				call(key)
			}
			require.NoError(t, c.pipeline(ctx, 20, "RL.FIXED", key, "FOREVER", "1000"))
			left[key] += 20
			leader := leaders[i][0] - 'a'
			after := decided()
			require.Greater(t, after[leader], before[leader]+10)
			after[leader] = before[leader]
			require.Equal(t, before, after, "only the leader of the group of the key may decide")
		}
	}
}

func TestRedisCLIFollowsTheLeader(t *testing.T) {
	path, err := exec.LookPath("redis-cli")
	if err != nil {
		t.Skip("SKIPPED: redis-cli is not on the PATH (on Debian: apt install redis-tools)")
	}
	f := servertest.NewFakeCluster()
	startCluster(t, f, Config{Redirect: service.RedirectMoved})
	_, port, _ := strings.Cut(f.Addr("b"), ":")
	cli := func(args ...string) string {
		ctx, cancel := context.WithTimeout(t.Context(), servertest.Patience)
		defer cancel()
		out, err := exec.CommandContext(ctx, path, append([]string{"-p", port}, args...)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	assert.Equal(t, "1\n8\n0\n-1\n9\n", cli("-c", "RL.FIXED", "foo", "FOREVER", "9"))
	assert.Equal(t, "MOVED 12182 "+f.Addr("a")+"\n\n", cli("RL.FIXED", "foo", "FOREVER", "9"),
		"without -c it only says so")
	assert.Contains(t, cli("--cluster", "check", f.Addr("b")), "[OK] All 16384 slots covered.")
	f.Split("a", "b", "c", "a")
	check := cli("--cluster", "check", f.Addr("b"))
	assert.Contains(t, check, "[OK] All nodes agree about slots configuration.")
	assert.Contains(t, check, "[OK] All 16384 slots covered.")
}
