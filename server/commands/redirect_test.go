package commands

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/acl"
	"github.com/weir-project/weir/server/servertest"
	"github.com/weir-project/weir/server/service"
)

const takeFoo = "RL.FIXED foo FOREVER 9" // the slot of foo is 12182

func TestRedirectMoved(t *testing.T) {
	f := servertest.NewFakeCluster()
	follower, node := clusterClient(t, f, "b", Config{Redirect: service.RedirectMoved})
	leader, _ := clusterClient(t, f, "a", Config{Redirect: service.RedirectMoved})
	const moved = "-MOVED 12182 10.0.0.1:6380"
	assert.Equal(t, "1 8 0 -1 9", leader.say(takeFoo))
	for _, send := range []string{takeFoo, "RL.REFUND foo 1", "DEL foo x", "RL.BLOCK foo 1s", "INCREX foo",
		"CL.THROTTLE foo 1 1 1"} {
		assert.Equal(t, moved, follower.say(send), send)
	}
	assert.Equal(t, "-ERR max "+wholeTo53+", not 'x'", follower.say("RL.FIXED foo FOREVER x"),
		"a wrong command must get its error on every node")
	assert.Zero(t, node.Decided.Load())
	assert.Equal(t, "fixed", follower.say("TYPE foo"), "reads must not be redirected")
	assert.Equal(t, "7", follower.value("RL.EXPLAIN "+takeFoo).get("remaining").text)

	f.Lead("")
	before := node.Decided.Load()
	assert.Equal(t, "-CLUSTERDOWN the cluster has no leader, nothing was counted", follower.say(takeFoo))
	assert.Equal(t, before, node.Decided.Load(), "nothing may be forwarded")
	f.Lead("b")
	assert.Equal(t, "1 7 0 -1 9", follower.say(takeFoo))
	assert.Equal(t, "-MOVED 12182 10.0.0.2:6380", leader.say(takeFoo))

	f.Lead("c")
	f.Change(func(t *limiter.Topology) { t.Nodes[2].ClientAddr = "" })
	assert.Equal(t, "1 6 0 -1 9", follower.say(takeFoo), "forwarded: there is nowhere to send the client")
	f.Change(func(t *limiter.Topology) { t.Nodes[2].ClientAddr = "[2001:db8::1]:6380" })
	assert.Equal(t, "-MOVED 12182 2001:db8::1:6380", follower.say(takeFoo), "as Redis writes it")
}

func TestRedirectOfATransaction(t *testing.T) {
	f := servertest.NewFakeCluster()
	c, _ := clusterClient(t, f, "b", Config{Redirect: service.RedirectMoved})
	const moved = "-MOVED 12182 10.0.0.1:6380"
	assert.Equal(t, "OK", c.say("MULTI"))
	assert.Equal(t, moved, c.say(takeFoo))
	assert.Equal(t, "-"+string(errExecAbort), c.say("EXEC"))

	f.Lead("b")
	c.say("MULTI")
	assert.Equal(t, "QUEUED", c.say(takeFoo))
	assert.Equal(t, "QUEUED", c.say("TYPE foo"))
	f.Lead("a")
	assert.Equal(t, moved, c.say("EXEC"), "the whole transaction must be redirected")
	assert.Equal(t, "-"+string(errExecNoMulti), c.say("EXEC"))
	assert.EqualValues(t, 0, f.Len(0))

	c.say("MULTI")
	c.say("PING")
	assert.Equal(t, "PONG", c.say("EXEC"), "a transaction without decisions must not be redirected")
}

func TestForwarding(t *testing.T) {
	f := servertest.NewFakeCluster()
	c, node := clusterClient(t, f, "b", Config{})
	assert.Equal(t, "1 8 0 -1 9", c.say(takeFoo))
	assert.EqualValues(t, 1, node.Decided.Load(), "the limiter must forward the decision itself")
	f.Lead("")
	assert.True(t, strings.HasPrefix(c.say(takeFoo), "-CLUSTERDOWN "))
}

func TestRedirectConfig(t *testing.T) {
	for _, ok := range []string{"", service.RedirectForward, service.RedirectMoved} {
		_, err := NewShared(silent(Config{Redirect: ok}), servertest.NewTableLimiter())
		require.NoError(t, err)
	}
	_, err := NewShared(silent(Config{Redirect: "MOVED"}), servertest.NewTableLimiter())
	require.ErrorIs(t, err, ErrBadConfig)

	c := newTestServer(t, Config{Redirect: service.RedirectMoved}).client(t)
	assert.Equal(t, "1 8 0 -1 9", c.say(takeFoo), "a server that stands alone has nowhere to send anyone")
}

// TestNoRedirectOverHTTP checks that a node forwards what a client of HTTP sends, because such a client follows no
// redirect, and that the node shows it the keys of all groups.
func TestNoRedirectOverHTTP(t *testing.T) {
	f := servertest.NewFakeCluster()
	f.Split("b", "a", "b", "a") // a leads the group of bar
	srv, err := NewShared(silent(Config{Redirect: service.RedirectMoved}), f.Node("b"))
	require.NoError(t, err)
	h := newHTTP(srv)
	for _, c := range [][3]string{
		{"/", `["INCR", "bar"]`, `{"result": 1}`},
		{"/pipeline", `[["INCR", "bar"], ["KEYS", "*"], ["DBSIZE"]]`,
			`[{"result": 2}, {"result": ["bar"]}, {"result": 1}]`},
		{"/multi-exec", `[["INCR", "bar"], ["GET", "bar"]]`, `[{"result": 3}, {"result": "3"}]`},
	} {
		require.JSONEq(t, c[2], rest(h, c[0], c[1], nil).Body.String(), c[1])
	}
	reply, err := srv.ByHand(t.Context(), here, here, srv.Users.Load().Get(acl.DefaultUser),
		[][]byte{[]byte("RL.RESET"), []byte("bar")})
	require.NoError(t, err)
	require.EqualValues(t, 1, reply)
}
