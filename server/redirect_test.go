package server

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/service"
)

const takeFoo = "RL.FIXED foo FOREVER 9" // the slot of foo is 12182

func TestRedirectMoved(t *testing.T) {
	f := newFakeCluster()
	follower, node := f.client(t, "b", Config{Redirect: service.RedirectMoved})
	leader, _ := f.client(t, "a", Config{Redirect: service.RedirectMoved})
	const moved = "-MOVED 12182 10.0.0.1:6380"
	assert.Equal(t, "1 8 0 -1 9", leader.say(takeFoo))
	for _, send := range []string{takeFoo, "RL.REFUND foo 1", "DEL foo x", "RL.BLOCK foo 1s", "INCREX foo", "CL.THROTTLE foo 1 1 1"} {
		assert.Equal(t, moved, follower.say(send), send)
	}
	assert.Equal(t, "-ERR max "+wholeTo53+", not 'x'", follower.say("RL.FIXED foo FOREVER x"), "what is wrong is wrong anywhere")
	assert.Zero(t, node.decided.Load())
	assert.Equal(t, "fixed", follower.say("TYPE foo"), "reads stay")
	assert.Equal(t, "7", follower.value("RL.EXPLAIN "+takeFoo).get("remaining").text)

	f.lead("")
	before := node.decided.Load()
	assert.Equal(t, "-CLUSTERDOWN the cluster has no leader, nothing was counted", follower.say(takeFoo))
	assert.Equal(t, before, node.decided.Load(), "nothing is forwarded")
	f.lead("b")
	assert.Equal(t, "1 7 0 -1 9", follower.say(takeFoo))
	assert.Equal(t, "-MOVED 12182 10.0.0.2:6380", leader.say(takeFoo))

	f.lead("c")
	f.change(func(t *limiter.Topology) { t.Nodes[2].ClientAddr = "" })
	assert.Equal(t, "1 6 0 -1 9", follower.say(takeFoo), "forwarded: there is nowhere to send the client")
	f.change(func(t *limiter.Topology) { t.Nodes[2].ClientAddr = "[2001:db8::1]:6380" })
	assert.Equal(t, "-MOVED 12182 2001:db8::1:6380", follower.say(takeFoo), "as Redis writes it")
}

// Each command of a pipeline is sent to the slot of its own key, and none runs.
func TestRedirectOfAPipeline(t *testing.T) {
	f := newFakeCluster()
	node := f.node("b")
	p := startWire(t, Config{Redirect: service.RedirectMoved}, node).dial(t)
	p.send(takeFoo + "\r\nRL.FIXED x FOREVER 9\r\nPING\r\n" + takeFoo + "\r\n")
	const foo, x = "-MOVED 12182 10.0.0.1:6380\r\n", "-MOVED 16287 10.0.0.1:6380\r\n"
	p.expect(foo + x + pong + foo)
	require.Zero(t, node.decided.Load())
}

func TestRedirectOfATransaction(t *testing.T) {
	f := newFakeCluster()
	c, _ := f.client(t, "b", Config{Redirect: service.RedirectMoved})
	const moved = "-MOVED 12182 10.0.0.1:6380"
	assert.Equal(t, "OK", c.say("MULTI"))
	assert.Equal(t, moved, c.say(takeFoo))
	assert.Equal(t, "-"+string(errExecAbort), c.say("EXEC"))

	f.lead("b")
	c.say("MULTI")
	assert.Equal(t, "QUEUED", c.say(takeFoo))
	assert.Equal(t, "QUEUED", c.say("TYPE foo"))
	f.lead("a")
	assert.Equal(t, moved, c.say("EXEC"), "all of it or nothing")
	assert.Equal(t, "-"+string(errExecNoMulti), c.say("EXEC"))
	assert.EqualValues(t, 0, f.Len())

	c.say("MULTI")
	c.say("PING")
	assert.Equal(t, "PONG", c.say("EXEC"), "nothing to decide, nothing to redirect")
}

func TestForwarding(t *testing.T) {
	f := newFakeCluster()
	c, node := f.client(t, "b", Config{})
	assert.Equal(t, "1 8 0 -1 9", c.say(takeFoo))
	assert.EqualValues(t, 1, node.decided.Load(), "the limiter forwards by itself")
	f.lead("")
	assert.True(t, strings.HasPrefix(c.say(takeFoo), "-CLUSTERDOWN "))
}

func TestRedirectConfig(t *testing.T) {
	for _, ok := range []string{"", service.RedirectForward, service.RedirectMoved} {
		_, err := New(silent(Config{Redirect: ok}), newTableLimiter())
		require.NoError(t, err)
	}
	_, err := New(silent(Config{Redirect: "MOVED"}), newTableLimiter())
	require.ErrorIs(t, err, ErrBadConfig)

	c := newTestServer(t, Config{Redirect: service.RedirectMoved}).client(t)
	assert.Equal(t, "1 8 0 -1 9", c.say(takeFoo), "a server that stands alone has nowhere to send anyone")
}
