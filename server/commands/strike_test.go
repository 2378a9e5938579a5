package commands

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// bruteForce is the strike limit of most login pages: delays first, then a lock.
const bruteForce = "15m 4 DELAY 2s 6 DELAY 5s 11 15m ATTEMPTS"

// TestAttempts checks the delay of each attempt. The eleventh attempt is admitted, and later ones are denied until
// the lock ends.
func TestAttempts(t *testing.T) {
	srv := newTestServer(t, Config{})
	c := srv.client(t)
	c.say("RL.POLICY SET lockout LIMIT STRIKE " + bruteForce)
	for _, way := range []struct{ begin, forgive, word string }{
		{"RL.STRIKE login:42 " + bruteForce, "RL.RESET login:42", ""},
		{"RL.CHECK lockout 42", "RL.FORGIVE lockout 42", " lockout"},
	} {
		require.Equal(t, "1 11 0 0 11"+way.word, c.say(way.begin+" COST 0"))
		for attempt, delayMs := range []int{0, 0, 0, 2000, 2000, 5000, 5000, 5000, 5000, 5000, 5000} {
			require.Equal(t, fmt.Sprintf("1 %d %d 900000 11%s", 10-attempt, delayMs, way.word), c.say(way.begin),
				"attempt %d", attempt+1)
		}
		require.Equal(t, "0 0 900000 900000 11"+way.word, c.say(way.begin))
		srv.lim.Advance(time.Minute)
		require.Equal(t, "0 0 840000 840000 11"+way.word, c.say(way.begin), "what is denied extends nothing")
		require.Equal(t, "0 0 840000 840000 11"+way.word, c.say(way.begin+" COST 0"))
		require.Equal(t, "1", c.say(way.forgive), "the last attempt succeeded")
		require.Equal(t, "0", c.say(way.forgive))
		require.Equal(t, "1 10 0 900000 11"+way.word, c.say(way.begin))
		srv.lim.Advance(time.Hour)
	}
}

// TestForgive checks that RL.FORGIVE changes several policies or none, and strikes only. It counts an ID once, and
// requires permission for the key.
func TestForgive(t *testing.T) {
	srv := newTestServer(t, Config{})
	c := srv.client(t)
	c.say("RL.POLICY SET user LIMIT FIXED 1h 9 FIRST LIMIT STRIKE 15m 3 15m ATTEMPTS LIMIT STRIKE 1d 5 1d ATTEMPTS")
	c.say("RL.POLICY SET ip LIMIT STRIKE 15m 3 15m")
	check := func() string { return c.say("RL.CHECK user 42 ip 192.0.2.1") }
	require.Equal(t, "1 2 0 900000 3 user", check())
	require.Equal(t, "-ERR there is no policy 'none'", strings.SplitN(c.say("RL.FORGIVE user 42 none 42"), ",", 2)[0])
	require.Equal(t, "3", c.say("RL.FORGIVE user 42 ip 192.0.2.1 ID once"))
	require.Contains(t, c.say("RL.INSPECT policy|user|0|42"), " used 1 ",
		"RL.FORGIVE must not change a limit of another kind")
	check()
	require.Equal(t, "3", c.say("RL.FORGIVE user 42 ip 192.0.2.1 ID once"), "a repeated ID must get the same answer")
	require.Equal(t, "1 2 0 900000 3 user", c.say("RL.CHECK user 42 COST 0"))
	c.say("RL.POLICY DISABLE user")
	require.Equal(t, "2", c.say("RL.FORGIVE user 42"), "RL.FORGIVE must also work on a disabled policy")
	c.say("RL.BLOCK 43 1h")
	require.Equal(t, "0", c.say("RL.FORGIVE user 43"))
	require.Equal(t, "0", c.say("RL.CHECK ip 43")[:1], "a block must stay")
}

// TestLockoutEvents checks that a lock-out event has the policy, the key and the time. Delays, denials and extended
// locks publish nothing.
func TestLockoutEvents(t *testing.T) {
	srv := newTestServer(t, Config{})
	bot, c := srv.client(t), srv.client(t)
	bot.say("SUBSCRIBE weir:lockout:policy:lockout weir:lockout:strike")
	message := func(channel, payload string) string {
		return fmt.Sprintf("*3\r\n$7\r\nmessage\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", len(channel), channel,
			len(payload), payload)
	}
	c.say("RL.POLICY SET lockout LIMIT STRIKE 15m 1 DELAY 1s 2 15m ATTEMPTS EXTEND")
	c.say("RL.POLICY SET api LIMIT FIXED 1h 100 FIRST")
	c.say("RL.POLICY SET quiet LIMIT STRIKE 15m 1 15m ATTEMPTS SHADOW")
	c.say("RL.CHECK api 42 lockout 42")
	c.say("RL.EXPLAIN RL.CHECK api 42 lockout 42")
	c.say("RL.CHECK quiet 42")
	c.say("RL.STRIKE 42 15m 1 1s 2 DELAY 1s")
	c.say("RL.STRIKE 43 15m 1 1s 2 90500ms COST 0")
	assert.Empty(t, bot.fake.messages(), "a delay, a shadow policy and an early penalty must publish nothing")
	c.say("RL.CHECK api 42 lockout 42 ID once")
	assert.Equal(t, message("weir:lockout:policy:lockout", `{"policy":"lockout","key":"42","seconds":900}`),
		bot.fake.messages())
	c.say("RL.CHECK api 42 lockout 42 ID once")
	c.say("RL.CHECK lockout 42")
	assert.Empty(t, bot.fake.messages(), "a repeated command and an extended lock must publish nothing")
	c.say("RL.STRIKE 43 15m 1 1s 2 90500ms COST 2")
	assert.Equal(t, message("weir:lockout:strike", `{"key":"43","seconds":91}`), bot.fake.messages())
	c.say("RL.FORGIVE lockout 42")
	bot.say("UNSUBSCRIBE weir:lockout:policy:lockout")
	c.say("RL.CHECK lockout 42 COST 2")
	assert.Empty(t, bot.fake.messages())
	bot.say("PSUBSCRIBE weir:lockout:*")
	c.say("RL.CHECK api 44 lockout 44 lockout 45 COST 2")
	got := bot.fake.messages()
	assert.Equal(t, 2, strings.Count(got, "pmessage"), "%s", got)
	assert.Contains(t, got, `{"policy":"lockout","key":"44","seconds":900}`)
	assert.Contains(t, got, `{"policy":"lockout","key":"45","seconds":900}`)
}

// TestMetricsOfAttempts checks that failures are the attempts that began minus those that succeeded, whichever
// command reports the success.
func TestMetricsOfAttempts(t *testing.T) {
	srv := newTestServer(t, Config{})
	c := srv.client(t)
	c.say("RL.POLICY SET lockout LIMIT STRIKE 15m 2 DELAY 1s 4 15m ATTEMPTS EXTEND")
	for range 3 {
		c.say("RL.CHECK lockout 42")
	}
	c.say("RL.FORGIVE lockout 42")
	c.say("RL.STRIKE login:42 15m 4 15m ATTEMPTS")
	c.say("RL.RESET login:42")
	c.say("RL.POLICY SET named LIMIT STRIKE 15m 4 15m ATTEMPTS LAYOUT rl:auth:fail:{key}")
	require.Equal(t, "1 3 0 900000 4 named", c.say("RL.CHECK named 42"))
	require.Equal(t, "1", c.say("DEL rl:auth:fail:42"), "DEL must accept the name that the policy gives its keys")
	require.Equal(t, "1 4 0 0 4 named", c.say("RL.CHECK named 42 COST 0"))
	c.say("RL.STRIKE reported 15m 4 15m")
	c.say("RL.RESET reported")
	for range 6 {
		c.say("RL.CHECK lockout 43")
	}
	for name, want := range map[string]string{
		"strikes": "12", "strike_successes": "3", "strike_delays": "5", "strike_penalties": "1", "strike_lockouts": "1",
	} {
		assert.Equal(t, want, value(t, srv.Shared, "weir_"+name+"_total"), name)
	}
	assert.Equal(t, "2", value(t, srv.Shared, `weir_decisions_total{algorithm="strike",result="denied"}`),
		"attempts after the lock must count")
}

// TestStrikesAreReadAndWritten checks that RL.POLICY GET shows a strike limit in the form that SET accepts.
func TestStrikesAreReadAndWritten(t *testing.T) {
	c := newTestServer(t, Config{}).client(t)
	for sent, shown := range map[string]string{
		bruteForce:                               bruteForce,
		"60 3 delay 1500ms 4 30 extend attempts": "1m 3 DELAY 1500ms 4 30s ATTEMPTS EXTEND",
		"1m 3 30s EXTEND":                        "1m 3 30s EXTEND",
	} {
		require.NotContains(t, c.say("RL.POLICY SET p LIMIT STRIKE "+sent), "-ERR")
		require.Contains(t, c.say("RL.POLICY GET p"), "STRIKE "+shown)
		c.say("RL.STRIKE k " + sent)
		require.Contains(t, c.say("RL.INSPECT k"), "rule "+shown)
		require.Contains(t, c.say("RL.EXPLAIN RL.STRIKE k "+sent), "rule "+shown)
		c.say("RL.RESET k")
	}
	for _, sent := range []string{"1m 3 30s ATTEMPTS ATTEMPTS", "1m 3 30s EXTEND 4 1m", "1m 3 DELAY", "1m DELAY 3s"} {
		require.Contains(t, c.say("RL.POLICY SET q LIMIT STRIKE "+sent), "-ERR", sent)
	}
	c.say("RL.POLICY SET p LIMIT STRIKE 1m 1 DELAY 2s 2 1m ATTEMPTS")
	require.Contains(t, c.say("RL.EXPLAIN RL.CHECK p k"),
		"it is admitted, and its response must be delayed for 2000 ms")
	c.say("RL.CHECK p k")
	require.Contains(t, c.say("RL.EXPLAIN RL.CHECK p k"),
		"this attempt is admitted, and is the last: the key is then blocked")
}
