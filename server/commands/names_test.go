package commands

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/servertest"
	"github.com/weir-project/weir/server/service"
)

// TestLayoutNames checks that the limiters of a policy are found by the names that its layout makes.
func TestLayoutNames(t *testing.T) {
	c := defaultClient(t)
	runStepsOn(t, c, []step{
		{"", "RL.POLICY SET login LIMIT TOKENBUCKET 1/s 5 LAYOUT rate-limit:{key}:{policy}", "1"},
		{"", "RL.CHECK login ip:1", "1 4 0 1000 5 login"},
		{"", "RL.CHECK login ip:2", "1 4 0 1000 5 login"},
		{"", "RL.TOKENBUCKET other 1/s 5", "1 4 0 1000 5"},
	})
	require.ElementsMatch(t, []string{"rate-limit:ip:1:login", "rate-limit:ip:2:login"}, listOf(c, "KEYS rate-limit:*"))
	require.ElementsMatch(t, []string{"rate-limit:ip:1:login", "rate-limit:ip:2:login", "other"}, listOf(c, "KEYS *"))
	require.ElementsMatch(t, []string{"policy|login|0|ip:1", "policy|login|0|ip:2"}, listOf(c, "KEYS policy|*"))
	runStepsOn(t, c, []step{
		{"", "SCAN 0 MATCH rate-limit:ip:1:* COUNT 1000", "0 rate-limit:ip:1:login"},
		{"", "GET rate-limit:ip:1:login", "4 of 5 left, as if never used in 1000 ms"},
		{"", "GET rate-limit:ip:3:login", "nil"},
		{"", "TTL rate-limit:ip:1:login", "1"},
		{"", "PTTL rate-limit:ip:1:login", "1000"},
		{"", "TYPE rate-limit:ip:1:login", "tokenbucket"},
		{"", "EXISTS rate-limit:ip:1:login rate-limit:ip:2:login rate-limit:ip:3:login", "2"},
		{"", "DEL rate-limit:ip:1:login rate-limit:ip:3:login", "1"},
		{"", "KEYS rate-limit:*", "rate-limit:ip:2:login"},
		{"", "UNLINK rate-limit:ip:2:login", "1"},
		{"", "KEYS rate-limit:*", ""},
	})
}

// TestLayoutWithin checks that a name which two layouts make belongs to the layout with more fixed text.
func TestLayoutWithin(t *testing.T) {
	c := defaultClient(t)
	runStepsOn(t, c, []step{
		{"", "RL.POLICY SET auth LIMIT TOKENBUCKET 1/s 3 LAYOUT rl:auth:{key}", "1"},
		{"", "RL.POLICY SET fails LIMIT SLIDING 1m 5 LAYOUT rl:auth:fail:{key}", "1"},
		{"", "RL.CHECK auth 192.0.2.1", "1 2 0 1000 3 auth"},
		{"", "RL.CHECK auth fail:42", "1 2 0 1000 3 auth"},
		{"", "RL.CHECK fails 42", "1 4 0 60000 5 fails"},
		{"", "TYPE rl:auth:192.0.2.1", "tokenbucket"},
		{"", "TYPE rl:auth:fail:42", "sliding"},
		{"", "DEL rl:auth:fail:42", "1"},
		{"", "RL.CHECK auth fail:42 COST 0", "1 2 0 1000 3 auth"},
		{"", "RL.CHECK fails 42", "1 4 0 60000 5 fails"},
	})
	require.ElementsMatch(t, []string{"rl:auth:192.0.2.1", "policy|auth|0|fail:42", "rl:auth:fail:42"},
		listOf(c, "KEYS *"))
	for layout, want := range map[string]string{
		"rl:auth:{key}": "-" + string(service.ErrLayoutTaken), "rl:auth:fail:{key}": "-" +
			string(service.ErrLayoutTaken),
		"rl:{key}:x": "-" + string(service.ErrLayoutTaken), "rl:auth:{key}:x": "-" + string(service.ErrLayoutTaken),
		"rl:{key}": "1",
	} {
		require.Equal(t, want, c.say("RL.POLICY SET other LIMIT FIXED 1m 5 LAYOUT "+layout), layout)
		c.say("RL.POLICY DEL other")
	}
}

// listOf returns the elements of a flat reply.
func listOf(c *testClient, line string) []string { return strings.Fields(c.say(line)) }

// TestLayoutOfSeveralLimits checks that the limits of one policy share a name. The name is listed once, and a reset
// of it removes every limiter.
func TestLayoutOfSeveralLimits(t *testing.T) {
	c := defaultClient(t)
	runStepsOn(t, c, []step{
		{"", "RL.POLICY SET api LIMIT TOKENBUCKET 10/s 20 LIMIT FIXED 1h 15 FIRST LIMIT STRIKE 1h 9 1m LAYOUT " +
			"rl:{policy}:{key}", "1"},
		{"", "RL.CHECK api u1 COST 6", "1 3 0 3600000 9 api"},
		{"", "KEYS *", "rl:api:u1"},
		{"", "SCAN 0 COUNT 100", "0 rl:api:u1"},
		{"", "RANDOMKEY", "rl:api:u1"},
		{"", "PTTL rl:api:u1", "3600000"},
		{"", "TYPE rl:api:u1", "strike"},
		{"1000", "HMGET rl:api:u1 algorithm remaining idle_in_ms", "strike 3 3599000"},
		{"", "GET rl:api:u1", "3 of 9 left, as if never used in 3599000 ms"},
		{"", "RL.CHECK api u1 COST 3", "0 0 60000 3600000 9 api"},
		{"", "HGET rl:api:u1 penalty_ms", "60000"},
		{"", "GET rl:api:u1", "0 of 9 left, denied for another 60000 ms"},
		{"", "EXISTS rl:api:u1 rl:api:u1 rl:api:u2", "2"},
		{"", "RL.RESET rl:api:u1 ID token", "1"}, // ID is an option here, not a key
		{"", "RL.RESET rl:api:u1", "0"},
		{"", "DBSIZE", "0"},
	})
}

// TestLayoutBesidePlainLimiter checks that a plain limiter that is older than the layout of its name is shown first,
// and that DEL removes both.
func TestLayoutBesidePlainLimiter(t *testing.T) {
	runStepsOn(t, defaultClient(t), []step{
		{"", "RL.TOKENBUCKET rl:u1 1/s 5 COST 2", "1 3 0 2000 5"},
		{"", "SET rl:u2 7", "OK"},
		{"", "RL.POLICY SET api LIMIT FIXED 1h 15 FIRST LAYOUT rl:{key}", "1"},
		{"", "RL.CHECK api u1", "1 14 0 3600000 15 api"},
		{"", "KEYS rl:u1", "rl:u1 rl:u1"},
		{"", "TYPE rl:u1", "tokenbucket"},
		{"", "HMGET rl:u1 tokens used nothing", "3 2 nil"},
		{"1500", "HGET rl:u1 tokens", "4.5"},
		{"500", "TYPE rl:u1", "fixed"},
		{"", "RL.CHECK api u2", "1 14 0 3600000 15 api"},
		{"", "GET rl:u2", "7"},
		{"", "EXISTS rl:u2", "1"},
		{"", "DEL rl:u1 rl:u2", "2"},
		{"", "KEYS *", ""},
	})
}

// TestNoSecondLimiterUnderALayout checks every command of the table on a name that a layout makes: it works on the
// limiters of the policy, or it is an error. None leaves a plain limiter, string or block under the name.
func TestNoSecondLimiterUnderALayout(t *testing.T) {
	c := defaultClient(t)
	for _, send := range []string{"RL.POLICY SET api LIMIT FIXED 1h 15 FIRST LAYOUT rl:{key}", "RL.CHECK api u1"} {
		require.NotContains(t, c.say(send), "-ERR", send)
	}
	for _, send := range []string{
		"RL.TOKENBUCKET rl:u1 1/s 5", "RL.TOKENBUCKET rl:u1 1/s 5 COST 0", "RL.LEAKYBUCKET rl:u1 1/s 5",
		"RL.FIXED rl:u1 1h 15 FIRST", "RL.SLIDING rl:u1 1m 5", "RL.SLIDINGCOUNTER rl:u1 1m 5",
		"RL.ACQUIRE rl:u1 5 1m", "RL.RELEASE rl:u1 me", "RL.RENEW rl:u1 me 1m", "RL.STRIKE rl:u1 1m 5 1h",
		"RL.WAIT RL.FIXED rl:u1 1m 5 TIMEOUT 0", "RL.EXPLAIN RL.FIXED rl:u1 1m 5", "RL.REFUND rl:u1 1",
		"RL.BLOCK rl:u1 1m", "CL.THROTTLE rl:u1 15 30 60", "THROTTLE rl:u1 15 30 60", "GCRA rl:u1 15 30 60",
		"INCREX rl:u1", "INCR rl:u1", "INCRBY rl:u1 2", "DECR rl:u1", "DECRBY rl:u1 2", "EXPIRE rl:u1 9",
		"PEXPIRE rl:u1 9", "EXPIREAT rl:u1 9", "PEXPIREAT rl:u1 9", "PERSIST rl:u1", "SET rl:u1 7", "SET rl:u1 abc",
		"SETEX rl:u1 9 7", "PSETEX rl:u1 9 7", "SETNX rl:u1 7", "GETSET rl:u1 7", "GETDEL rl:u1", "GETEX rl:u1",
		"MGET other rl:u1", "APPEND rl:u1 7",
	} {
		require.Contains(t, c.say(send), "-ERR 'rl:u1' names what policy api counts", send)
		require.Equal(t, "rl:u1", c.say("KEYS *"), send)
	}
	require.Contains(t, c.say("MULTI"), "OK")
	c.say("INCR rl:u1")
	require.NotContains(t, c.say("EXEC"), "1")
	const left = "14 of 15 left, as if never used in 3600000 ms"
	require.Equal(t, left, c.say("GET rl:u1"))
	require.Equal(t, strconv.Itoa(len(left)), c.say("STRLEN rl:u1"))
	require.Equal(t, "1 13 0 3600000 15 api", c.say("RL.CHECK api u1"))
	require.Equal(t, "1 14 0 3600000 15 api", c.say("RL.CHECK api rl:u1"), "a key of a policy may look like a name")
	require.Equal(t, "14", c.say("RL.REFUND policy|api|0|u1 1"))
}

// TestStrikesUnderLayout checks that GET of a name answers the count of strikes, as a program that counts failures with
// INCR reads it.
func TestStrikesUnderLayout(t *testing.T) {
	runStepsOn(t, defaultClient(t), []step{
		{"", "RL.POLICY SET fails LIMIT STRIKE 15m 2 5s 4 15m LAYOUT rl:auth:fail:{key}", "1"},
		{"", "GET rl:auth:fail:42", "nil"},
		{"", "RL.CHECK fails 42", "1 3 0 900000 4 fails"},
		{"", "GET rl:auth:fail:42", "1"},
		{"", "RL.CHECK fails 42", "0 2 5000 900000 4 fails"},
		{"", "GET rl:auth:fail:42", "2"},
		{"5000", "RL.CHECK fails 42", "1 1 0 900000 4 fails"},
		{"", "RL.CHECK fails 42", "0 0 900000 900000 4 fails"},
		{"", "GET rl:auth:fail:42", "4"},
		{"", "RL.FORGIVE fails 42", "1"},
		{"", "GET rl:auth:fail:42", "nil"},
	})
}

// TestBlockedUnderLayout checks that the name shows a block of its key. Blocking the name itself is an error, because
// it would have no effect.
func TestBlockedUnderLayout(t *testing.T) {
	runStepsOn(t, defaultClient(t), []step{
		{"", "RL.POLICY SET api LIMIT FIXED 1h 15 FIRST LAYOUT rl:{key}", "1"},
		{"", "RL.CHECK api u1", "1 14 0 3600000 15 api"},
		{"", "RL.BLOCK rl:u1 1m",
			"-ERR 'rl:u1' names what policy api counts: RL.BLOCK u1 blocks its key, under every policy"},
		{"", "RL.BLOCK u1 1m REASON abuse", "OK"},
		{"", "HMGET rl:u1 blocked blocked_ms blocked_by reason", "1 60000 u1 abuse"},
		{"", "GET rl:u1", "blocked for another 60000 ms"},
		{"", "DEL rl:u1", "1"},
		{"", "HMGET rl:u1 blocked algorithm", "1 none"},
		{"", "EXISTS rl:u1", "0"},
	})
}

// TestLayoutErrors checks the errors for an invalid LAYOUT or REPORT, and that such a command changes nothing.
func TestLayoutErrors(t *testing.T) {
	c := defaultClient(t)
	runStepsOn(t, c, []step{
		{"", "RL.POLICY SET p LIMIT FIXED 1m 5 LAYOUT",
			"-ERR LAYOUT needs a value, like LAYOUT rate-limit:{key}:{policy}"},
		{"", "RL.POLICY SET p LIMIT FIXED 1m 5 LAYOUT rl:{ip}",
			"-ERR LAYOUT must contain {key} exactly once, like rate-limit:{key}:{policy}, not 'rl:{ip}'"},
		{"", "RL.POLICY SET p LIMIT FIXED 1m 5 LAYOUT {key}",
			"-ERR LAYOUT must contain more than {key}, not '{key}'"},
		{"", "RL.POLICY SET p LIMIT FIXED 1m 5 REPORT RATE", "-ERR REPORT " + durations + "; or BURST, not 'RATE'"},
		{"", "RL.POLICY SET p LIMIT FIXED 1m 5 REPORT 0", "-ERR REPORT must be at least 1ms, not '0'"},
		{"", "RL.POLICY LIST", ""},
		{"", "RL.POLICY SET p LIMIT FIXED 1m 5 LAYOUT rl:{key} REPORT burst", "1"},
		{"", "RL.POLICY SET q LIMIT FIXED 1m 5 LAYOUT rl:{key}", "-" + string(service.ErrLayoutTaken)},
		{"", "RL.POLICY SET p LIMIT FIXED 1m 5", "2"},
		{"", "RL.POLICY SET q LIMIT FIXED 1m 5 LAYOUT rl:a:{key} REPORT 90s", "1"},
	})
	require.Contains(t, c.say("RL.POLICY GET q"), " layout rl:a:{key} report 90s")
}

// TestReportedRate checks that REPORT determines the fifth integer of every kind of check.
func TestReportedRate(t *testing.T) {
	c := defaultClient(t)
	runStepsOn(t, c, []step{
		{"", "RL.POLICY SET gateway LIMIT TOKENBUCKET 10/s 50 REPORT 1s LAYOUT rl:{policy}:{key}", "1"},
		{"", "RL.POLICY SET market LIMIT TOKENBUCKET 60/m 20 REPORT 1m", "1"},
		{"", "RL.CHECK gateway k", "1 49 0 100 10 gateway"},
		{"", "RL.CHECK market k COST 20", "1 0 0 20000 60 market"},
		{"", "RL.CHECK market k", "0 0 1000 20000 60 market"},
		{"", "RL.RESERVE gateway k 1 1m ID h", "1 48 0 200 10 h"},
		{"", "GET rl:gateway:k", "48 of 50 left, as if never used in 200 ms"},
	})
	require.Contains(t, c.say("RL.EXPLAIN RL.CHECK gateway k"),
		"limit 10 policy gateway key k limiter policy|gateway|0|k rule TOKENBUCKET 10/s 50 why it needs 1 unit, "+
			"which leaves 47 of 50")
}

// TestUsersUnderLayouts checks that a user needs permission for the name and for the limiters' own names. A layout
// therefore grants nothing.
func TestUsersUnderLayouts(t *testing.T) {
	srv, _ := usersServer(t, "", strings.Join([]string{
		"user all on nopass ~* +@all", "user name on nopass ~rl:* +@all", "user own on nopass ~policy|api|* +@all",
		"user both on nopass ~rl:* ~policy|api|* +@all", "user one on nopass ~rl:* ~policy|api|0|* +@all",
	}, "\n"))
	all := srv.client(t).as("all", "x")
	all.say("RL.POLICY SET api LIMIT FIXED 1h 15 FIRST LIMIT FIXED 1m 9 FIRST LAYOUT rl:{key}")
	deleteAll := `EVAL "return redis.call('del', unpack(redis.call('keys', 'rl:*')))" 0`
	for _, send := range []string{"GET rl:u1", "TTL rl:u1", "HGETALL rl:u1", "EXISTS rl:u1", "MEMORY USAGE rl:u1",
		deleteAll, "DEL rl:u1", "RL.RESET rl:u1"} {
		all.say("RL.CHECK api u1")
		for _, user := range []string{"name", "own", "one"} {
			require.Equal(t, "-"+string(service.ErrNoKey), srv.client(t).as(user, "x").say(send), "%s: %s", user, send)
		}
		require.NotEqual(t, byte('-'), srv.client(t).as("both", "x").say(send)[0], send)
	}
	require.Equal(t, "0", all.say("EXISTS rl:u1"))
}

// TestDeleteAllLines checks that the Lua line for deleting a pattern is recognised with any literal pattern. Any
// other difference makes it unknown.
func TestDeleteAllLines(t *testing.T) {
	line := func(pattern string) string { return deleteAllBegin + pattern + deleteAllEnd }
	for text, want := range map[string]string{line("ratelimit:*"): "ratelimit:*", line(""): "", line("a\"b"): "a\"b"} {
		pattern, ok := deleteAllPattern([]byte(text))
		require.True(t, ok, text)
		require.Equal(t, want, string(pattern))
	}
	for _, text := range []string{line("a' .. 'b"), line(`a\nb`), line("a\nb"),
		line(strings.Repeat("x", maxPatternBytes+1)), line("a") + " ", " " + line("a"), "", deleteAllBegin} {
		_, ok := deleteAllPattern([]byte(text))
		require.False(t, ok, text)
	}
}

// TestDeleteAllBehindOthers checks that the script sees earlier commands of its pipeline and finds names made by
// layouts. A transaction refuses it.
func TestDeleteAllBehindOthers(t *testing.T) {
	c := defaultClient(t)
	c.say("RL.POLICY SET api LIMIT FIXED 1h 15 FIRST LIMIT FIXED 1m 9 FIRST LAYOUT ratelimit:{policy}:{key}")
	script := deleteAllBegin + "ratelimit:*" + deleteAllEnd
	for i := range 3 * MaxBatch {
		c.sess.Do(bytesOf("RL.CHECK", "api", "u"+decimal(int64(i))))
	}
	c.sess.Do(bytesOf("RL.FIXED", "other", "1h", "9"))
	require.Equal(t, ":3072\r\n", lastReply(c.raw("EVAL", script, "0")))
	runStepsOn(t, c, []step{{"", "KEYS *", "other"}, {"", "MULTI", "OK"}})
	require.Equal(t, "-"+string(errAlone)+"\r\n", c.raw("EVAL", script, "0"))
	require.Equal(t, "-"+string(errExecAbort), c.say("EXEC"))
}

// lastReply returns the last line of the replies.
func lastReply(replies string) string {
	lines := strings.SplitAfter(replies, "\r\n")
	return lines[len(lines)-2]
}

func bytesOf(words ...string) (args [][]byte) {
	for _, w := range words {
		args = append(args, []byte(w))
	}
	return args
}

// TestDeleteAllIsLinearizable checks that the script, on every node, deletes each key that any node has acknowledged.
func TestDeleteAllIsLinearizable(t *testing.T) {
	f := servertest.NewFakeCluster()
	script := deleteAllBegin + "k*" + deleteAllEnd
	for _, id := range []string{"a", "b"} {
		c, node := clusterClient(t, f, id, Config{})
		c.say("RL.FIXED k FOREVER 9")
		before := node.Confirms.Load()
		require.Equal(t, ":1\r\n", c.raw("EVAL", script, "0"))
		require.Positive(t, node.Confirms.Load()-before)
		c.say("RL.FIXED k FOREVER 9")
		f.SetDown(limiter.ErrTryAgain)
		require.True(t, strings.HasPrefix(c.raw("EVAL", script, "0"), "-TRYAGAIN "))
		f.SetDown(nil)
		require.Equal(t, "1", c.say("DEL k"))
	}
}
