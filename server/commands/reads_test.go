package commands

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/servertest"
)

// readers maps each command that reads limiters to a call of it.
var readers = map[string]string{
	"rl.events": "RL.EVENTS GROUP 0", "xread": "XREAD STREAMS weir:events:0 0", "xlen": "XLEN weir:events:0",
	"xrange":     "XRANGE weir:events:0 - +",
	"rl.inspect": "RL.INSPECT k", "rl.explain": "RL.EXPLAIN RL.FIXED k FOREVER 9", "hgetall": "HGETALL k",
	"hget": "HGET k used", "hmget": "HMGET k used x", "rl.top": "RL.TOP ADMITTED",
	"rl.holds": "RL.HOLDS p k",
	"hlen":     "HLEN k", "hkeys": "HKEYS k", "hexists": "HEXISTS k used", "zcard": "ZCARD {k}z",
	"rl.policy|get": "RL.POLICY GET p", "rl.policy|list": "RL.POLICY LIST",
	"keys": "KEYS *", "scan": "SCAN 0", "ttl": "TTL k", "pttl": "PTTL k", "type": "TYPE k", "exists": "EXISTS k",
	"randomkey": "RANDOMKEY", "dbsize": "DBSIZE", "memory|usage": "MEMORY USAGE k",
	"object|encoding": "OBJECT ENCODING k",
	"sismember":       "SISMEMBER rl:blacklist:ip 192.0.2.1", "smismember": "SMISMEMBER rl:blacklist:ip 192.0.2.1",
	"smembers":                "SMEMBERS rl:blacklist:ip",
	"scard":                   "SCARD rl:blacklist:ip",
	"sscan":                   "SSCAN rl:blacklist:ip 0",
	"cluster|countkeysinslot": "CLUSTER COUNTKEYSINSLOT 1", "cluster|getkeysinslot": "CLUSTER GETKEYSINSLOT 1 1",
}

// TestEveryReadIsLinearizable checks each command with the flag readonly on every node, alone and in a transaction.
// It must use a ReadIndex, and is refused if none is possible. Under READONLY it asks no other node and is never
// refused.
func TestEveryReadIsLinearizable(t *testing.T) {
	f := servertest.NewFakeCluster()
	clients, nodes := map[string]*testClient{}, map[string]*servertest.FakeReplica{}
	for _, id := range []string{"a", "b"} { // a is the leader
		clients[id], nodes[id] = clusterClient(t, f, id, Config{BlacklistKey: blacklistKey})
	}
	clients["a"].say("RL.FIXED k FOREVER 9")
	clients["a"].say("RL.POLICY SET p LIMIT FIXED 1m 5")
	each(clients["a"].sess.srv.table.all, func(cmd *command) {
		if !cmd.has("readonly") || cmd.subs != nil {
			return
		}
		send, ok := readers[cmd.Full]
		require.True(t, ok, "%s has the flag readonly: add it to readers", cmd.Full)
		for id, c := range clients {
			requireLinearizable(t, f, c, nodes[id], send)
			if !cmd.has("no_multi") {
				requireLinearizableInMulti(t, f, c, nodes[id], send)
			}
			requireStale(t, f, c, nodes[id], send)
		}
	})
	assert.Equal(t, "PONG", clients["b"].say("PING"), "commands that read no limiter must need no leader")
}

// anew sends a command as the first of a new run of reads.
func (c *testClient) anew(send string) string {
	c.sess.reads.End()
	return string(c.raw(split(send)...))
}

func requireLinearizable(t *testing.T, f *servertest.FakeCluster, c *testClient, node *servertest.FakeReplica,
	send string) {
	before := node.Confirms.Load()
	require.NotEqual(t, byte('-'), c.anew(send)[0], send)
	require.EqualValues(t, 1, node.Confirms.Load()-before, send)
	for word, err := range map[string]error{"-TRYAGAIN ": limiter.ErrTryAgain,
		"-CLUSTERDOWN ": limiter.ErrClusterDown} {
		f.SetDown(err)
		require.True(t, strings.HasPrefix(c.anew(send), word), send)
	}
	f.SetDown(nil)
}

func requireLinearizableInMulti(t *testing.T, f *servertest.FakeCluster, c *testClient, node *servertest.FakeReplica,
	send string) {
	for word, err := range map[string]error{"-TRYAGAIN ": limiter.ErrTryAgain,
		"-CLUSTERDOWN ": limiter.ErrClusterDown} {
		f.SetDown(err)
		require.Equal(t, "OK", c.say("MULTI"))
		require.Equal(t, "QUEUED", c.say(send))
		require.True(t, strings.HasPrefix(c.anew("EXEC"), "*1\r\n"+word), send)
	}
	f.SetDown(nil)
	require.Equal(t, "OK", c.say("MULTI"))
	require.Equal(t, "QUEUED", c.say(send))
	before := node.Confirms.Load()
	require.NotContains(t, c.anew("EXEC"), "*1\r\n-", send)
	require.EqualValues(t, 1, node.Confirms.Load()-before, send)
}

func requireStale(t *testing.T, f *servertest.FakeCluster, c *testClient, node *servertest.FakeReplica, send string) {
	require.Equal(t, "OK", c.say("READONLY"))
	f.SetDown(limiter.ErrClusterDown)
	before := node.Confirms.Load()
	require.NotEqual(t, byte('-'), c.anew(send)[0], send)
	require.Zero(t, node.Confirms.Load()-before, send)
	f.SetDown(nil)
	require.Equal(t, "OK", c.say("READWRITE"))
}

// TestStaleReadsSayHowOldTheyAre checks that a read under READONLY reports its age, and that no other read does.
func TestStaleReadsSayHowOldTheyAre(t *testing.T) {
	f := servertest.NewFakeCluster()
	c, node := clusterClient(t, f, "b", Config{})
	c.say("RL.FIXED k FOREVER 9")
	f.SetAge(1500 * time.Millisecond)
	shown := func(stale string) {
		t.Helper()
		for _, send := range []string{"RL.INSPECT k", "HGETALL k", "RL.EXPLAIN RL.FIXED k FOREVER 9"} {
			assert.Equal(t, stale, c.value(send).get("stale_ms").text, send)
		}
	}
	shown("0")
	assert.Equal(t, "", c.say("RL.INSPECT idle"))
	assert.Contains(t, c.say("CLIENT INFO"), "flags=N ")
	c.say("READONLY")
	assert.Contains(t, c.say("CLIENT INFO"), "flags=r ")
	before := node.Confirms.Load()
	for _, leader := range []string{"a", "", "b"} {
		f.Lead(leader)
		if leader == "b" { // node a may not know the new leader yet
			f.SetAge(1600 * time.Millisecond)
			shown("1600")
			break
		}
		shown("1500")
		assert.Equal(t, "stale_ms 1500", c.say("RL.INSPECT idle"))
	}
	assert.Equal(t, before, node.Confirms.Load())
	for _, end := range []string{"READWRITE", "RESET"} {
		c.say("READONLY")
		c.say(end)
		shown("0")
		assert.Equal(t, "", c.say("RL.INSPECT idle"))
	}
}

// TestADenialBehindAWaitIsNoStaleRead checks the final numbers of RL.WAIT. They come from a dry run, which is
// linearizable even on a connection with stale reads.
func TestADenialBehindAWaitIsNoStaleRead(t *testing.T) {
	c, node := clusterClient(t, servertest.NewFakeCluster(), "b", Config{})
	c.say("READONLY")
	c.say("RL.TOKENBUCKET k 1/h 1")
	before := node.Confirms.Load()
	assert.Equal(t, "0", strings.Fields(c.say("RL.WAIT RL.TOKENBUCKET k 1/h 1 TIMEOUT 1ms"))[0])
	assert.EqualValues(t, 1, node.Confirms.Load()-before)
}
