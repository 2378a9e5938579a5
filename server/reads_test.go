package server

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// readers is every command that looks at limiters.
var readers = []string{
	"RL.INSPECT k", "RL.EXPLAIN RL.FIXED k FOREVER 9", "HGETALL k", "KEYS *", "SCAN 0", "TTL k", "PTTL k", "TYPE k", "EXISTS k",
	"RANDOMKEY", "DBSIZE", "MEMORY USAGE k", "OBJECT ENCODING k", "CLUSTER COUNTKEYSINSLOT 1",
}

func TestReadsAreConfirmedOnALeader(t *testing.T) {
	f := newFakeCluster()
	c, node := f.client(t, "a", Config{})
	c.say("RL.FIXED k FOREVER 9")
	for i, send := range readers {
		c.sess.confirmed = false
		assert.NotEqual(t, byte('-'), c.raw(split(send)...)[0], send)
		assert.EqualValues(t, i+1, node.confirms.Load(), send)
	}
	for word, err := range map[string]error{"-TRYAGAIN ": ErrTryAgain, "-CLUSTERDOWN ": ErrClusterDown} {
		f.setDown(err)
		for _, send := range readers {
			c.sess.confirmed = false
			assert.True(t, strings.HasPrefix(c.say(send), word), send)
		}
	}
	assert.Equal(t, "PONG", c.say("PING"), "other commands need no leader")
	assert.Contains(t, c.say("INFO commandstats"), "cmdstat_ttl:calls=3,")
	assert.Contains(t, c.say("INFO commandstats"), "rejected_calls=0,failed_calls=2\r\n")
}

func TestReadsOnAFollowerSayHowOldTheyAre(t *testing.T) {
	f := newFakeCluster()
	c, node := f.client(t, "b", Config{})
	c.say("RL.FIXED k FOREVER 9")
	f.setAge(1500 * time.Millisecond)
	for _, leader := range []string{"a", ""} {
		f.lead(leader)
		assert.Equal(t, "1500", c.value("RL.INSPECT k").get("stale_ms").text)
		assert.Equal(t, "fixed", c.say("TYPE k"))
	}
	assert.Zero(t, node.confirms.Load(), "a follower has nothing to confirm")
	f.lead("a")
	assert.Equal(t, "1500", c.value("RL.EXPLAIN RL.FIXED k FOREVER 9").get("stale_ms").text)
	assert.Equal(t, "", c.say("RL.INSPECT idle"))

	f.lead("b")
	assert.Equal(t, "0", c.value("RL.INSPECT k").get("stale_ms").text)
	f.setDown(ErrNotLeader) // lost while it was being confirmed
	c.sess.confirmed = false
	assert.Equal(t, "0", c.value("RL.INSPECT k").get("stale_ms").text, "what the limiter says")
}

// One confirmation is enough for reads that arrived together, and none holds
// beyond a decision.
func TestReadsOfAPipelineShareAConfirmation(t *testing.T) {
	f := newFakeCluster()
	node := f.node("a")
	p := startWire(t, Config{}, node).dial(t)
	round := func(send, want string, confirms int64) {
		t.Helper()
		before := node.confirms.Load()
		p.send(send)
		p.expect(want)
		require.Equal(t, confirms, node.confirms.Load()-before)
	}
	const one = "*5\r\n:1\r\n:8\r\n:0\r\n:-1\r\n:9\r\n"
	round(strings.Repeat("DBSIZE\r\n", 5), strings.Repeat(":0\r\n", 5), 1)
	round("DBSIZE\r\n", ":0\r\n", 1)
	round("DBSIZE\r\nRL.FIXED k FOREVER 9\r\nDBSIZE\r\nDBSIZE\r\n", ":0\r\n"+one+":1\r\n:1\r\n", 2)
	round("DBSIZE\r\nFLUSHALL\r\nDBSIZE\r\n", ":1\r\n+OK\r\n:0\r\n", 2)
	round("DBSIZE\r\nMULTI\r\nRL.FIXED k FOREVER 9\r\nDBSIZE\r\nDBSIZE\r\nEXEC\r\n",
		":0\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n"+one+":1\r\n:1\r\n", 2)
}
