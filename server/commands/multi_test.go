package commands

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/servertest"
)

func TestTransaction(t *testing.T) {
	c := defaultClient(t)
	lim := c.sess.srv.Limiter.Backend().(*servertest.TableLimiter)
	assert.Equal(t, "OK", c.say("MULTI"))
	for _, line := range []string{"RL.FIXED a FOREVER 5", "TTL a", "RL.FIXED b FOREVER 5 COST 9", "RL.RESET a b c",
		"EXISTS a", "CL.THROTTLE x 15 30 60"} {
		assert.Equal(t, "QUEUED", c.say(line), line)
	}
	assert.Contains(t, c.sess.about.Line(c.sess.about.Since), "flags=x db=0 sub=0 psub=0 ssub=0 multi=6")
	assert.Zero(t, lim.Calls)
	reply := c.value("EXEC")
	assert.Equal(t, 1, lim.Calls, "a transaction must be one call to the limiter")
	assert.Len(t, reply.items, 6)
	var got []string
	for _, item := range reply.items {
		got = append(got, item.flat())
	}
	assert.Equal(t, []string{"1 4 0 -1 5", "-2", "0 5 -1 0 5", "1", "0", "0 16 15 -1 2"}, got)
	assert.Equal(t, "-ERR EXEC without MULTI", c.say("EXEC"))
}

func TestTransactionArgumentsAreCopied(t *testing.T) {
	c := defaultClient(t)
	c.say("MULTI")
	args := words("RL.FIXED aaa FOREVER 5")
	c.sess.Do(args)
	copy(args[1], "bbb")
	copy(args[0], "XXXXXXXX")
	c.wire.Truncate(0)
	assert.Equal(t, "1 4 0 -1 5", c.say("EXEC"))
	assert.Equal(t, "1", c.say("EXISTS aaa"))
}

func TestBrokenTransaction(t *testing.T) {
	for _, bad := range []string{"NOPE", "RL.FIXED a FOREVER x", "RL.FIXED a", "SUBSCRIBE x", "MONITOR", "HELLO 3",
		"CLIENT REPLY OFF", "SAVE", "DEBUG CLOCK GET"} {
		c := defaultClient(t)
		c.say("MULTI")
		c.say("RL.FIXED a FOREVER 5")
		assert.True(t, strings.HasPrefix(c.say(bad), "-ERR"), bad)
		assert.Equal(t, "-"+string(errExecAbort), c.say("EXEC"), bad)
		assert.Equal(t, "0", c.say("EXISTS a"), bad)
		assert.Equal(t, "1 4 0 -1 5", c.say("RL.FIXED a FOREVER 5"), "the session must continue")
	}
}

func TestTransactionEdges(t *testing.T) {
	c := defaultClient(t)
	assert.Equal(t, "-ERR DISCARD without MULTI", c.say("DISCARD"))
	c.say("MULTI")
	assert.Equal(t, "-ERR MULTI calls can not be nested", c.say("MULTI"))
	assert.Equal(t, "-"+string(errWatch), c.say("WATCH k"))
	assert.Equal(t, "", c.say("EXEC"))
	c.say("MULTI")
	c.say("RL.FIXED a FOREVER 5")
	assert.Equal(t, "OK", c.say("DISCARD"))
	assert.Equal(t, "0", c.say("EXISTS a"))

	lim := c.sess.srv.Limiter.Backend().(*servertest.TableLimiter)
	c.say("MULTI")
	c.say("RL.FIXED a FOREVER 5")
	c.say("PING")
	lim.Err = limiter.ErrTryAgain
	assert.Equal(t, "-TRYAGAIN not applied, send it again PONG", c.say("EXEC"))
}

func TestTransactionIsBounded(t *testing.T) {
	c := defaultClient(t)
	c.say("MULTI")
	for range MaxBatch {
		assert.Equal(t, "QUEUED", c.say("PING"))
	}
	assert.Equal(t, "-"+string(errMultiTooLong), c.say("PING"))
	assert.Equal(t, "-"+string(errExecAbort), c.say("EXEC"))

	c.say("MULTI")
	assert.Equal(t, "QUEUED", c.say("RL.RESET"+differentKeys(1000)))
	assert.Equal(t, "-"+string(errMultiTooLong), c.say("RL.RESET"+differentKeys(100)))
	c.say("DISCARD")

	c.say("MULTI")
	for range 15 {
		assert.Equal(t, "QUEUED", c.raw("ECHO", strings.Repeat("x", 64<<10))[1:7])
	}
	for range 2 {
		c.raw("ECHO", strings.Repeat("x", 64<<10))
	}
	assert.Equal(t, "-"+string(errExecAbort), c.say("EXEC"))
}

func TestAcquireInTransactionNamesItsHolder(t *testing.T) {
	c := defaultClient(t)
	c.say("MULTI")
	c.say("RL.ACQUIRE k 2 1m")
	c.say("RL.EXPLAIN RL.ACQUIRE k 2 1m HOLDER x")
	holder := c.value("EXEC").items[0].items[5].text
	assert.Len(t, holder, 32)
	assert.Equal(t, "1", c.say("RL.RELEASE k "+holder))
}

// TestClientSideCachingFailsLoudly checks that the commands which rueidis sends for DoCache get an error.
func TestClientSideCachingFailsLoudly(t *testing.T) {
	c := defaultClient(t)
	for _, step := range []struct{ send, want string }{
		{"CLIENT CACHING YES", "-" + string(errCaching)}, {"MULTI", "OK"}, {"PTTL k", "QUEUED"},
		{"HGETALL k", "QUEUED"}, {"EXEC", "-" + string(errExecAbort)},
		{"MULTI", "OK"}, {"HGETALL k", "QUEUED"}, {"EXEC", ""},
	} {
		assert.Equal(t, step.want, c.say(step.send), step.send)
	}
}
