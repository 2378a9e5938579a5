package commands

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/server/service"
)

// These are scripts of @upstash/ratelimit 2.0.5, and those of 2.2.0 with the name in front.
const (
	upstashFixed   = "EVALSHA b13943e359636db027ad280f1def143f02158c13 1 "
	upstashUsed    = "EVALSHA 8c4c341934502aee132643ffbe58ead3450e5208 1 "
	upstashSlide   = "EVALSHA e1391e429b699c780eb0480350cd5b7280fd9213 2 "
	upstashLook    = "EVALSHA 65a73ac5a05bf9712903bc304b77268980c1c417 2 "
	upstashTake    = "EVALSHA 5bece90aeef8189a8cfd28995b479529e270b3c6 1 "
	upstashTokens  = "EVALSHA a15be2bb1db2a15f7c82db06146f9d08983900d0 1 "
	upstashReset   = "EVALSHA 54bd274ddc59fb3be0f42deee2f64322a10e2b50 1 "
	newUpstash     = "EVALSHA 74740bb3d7792848093cdef586b6b6037c455fd6 "
	newUpstashTake = "EVALSHA d60be5bd3d83482ae229309f1f7425424f891204 "
)

// TestUpstashScripts shows what the scripts of @upstash/ratelimit leave behind. TestForeignLimiters compares their
// answers with those of Redis.
func TestUpstashScripts(t *testing.T) {
	srv := newTestServer(t, Config{EnableDebug: true})
	c := srv.client(t)
	require.Equal(t, "OK", c.say("DEBUG CLOCK SET 1800000000000"))
	for _, test := range []struct{ send, want string }{
		{upstashFixed + "f:7 5000 2", "2"},
		{upstashUsed + "f:7 null", "2"},
		{upstashUsed + "f:8 null", "0"},
		{"PTTL f:7", "5000"},
		{upstashSlide + "s:u:1800000000 s:u:1799999999 3 1800000000400 1000 1", "2"},
		{upstashSlide + "s:u:1800000001 s:u:1800000000 3 1800000001500 1000 2", "1"},
		{upstashSlide + "s:u:1800000001 s:u:1800000000 3 1800000001500 1000 1", "0"},
		{upstashSlide + "s:u:1800000001 s:u:1800000000 3 1800000001500 1000 1", "-1"},
		{upstashLook + "s:u:1800000001 s:u:1800000000 1800000001000 1000", "4"},
		{upstashSlide + "s:u:30000000 s:u:29999999 3 1800000000400 60000 1", "2"},
		{newUpstash + `2 s:u:30000000 s:u:29999999 3 1800000000400 60000 1`, "1 3"},
		{newUpstash + `3 s:u:30000000 s:u:29999999 "" 3 1800000000400 60000 1`, "0 3"},
		{upstashTake + "s:u 3 1000 1 1800000000000 2", "1 1800000001000"},
		{upstashTokens + "s:u 3", "1 1800000000000"},
		{newUpstashTake + "1 s:u 3 1000 1 1800000000000 2", "-1 1800000001000 3"},
		{"HGETALL s:u", "refilledAt 1800000000000 tokens 1"},
		{"TYPE s:u", "hash"},
		{"PTTL s:u:w1000", "3000"},
		{"RL.BLOCK s:u:w1000 5s", "OK"},
		{upstashSlide + "s:u:1800000009 s:u:1800000008 3 1800000009500 1000 1", "-1"},
		{upstashLook + "s:u:1800000009 s:u:1800000008 1800000009500 1000", "2147483647"},
		{"RL.BLOCK s:u 5s", "OK"},
		{upstashTake + "s:u 3 1000 1 1800000009000 1", "-1 1800000014000"},
		{upstashTokens + "s:u 3", "0 -1"},
	} {
		assert.Equal(t, test.want, c.say(test.send), test.send)
	}
	calls, keys := srv.lim.Calls, srv.lim.Len(0)
	const names = "-ERR KEYS[1] and KEYS[2] must be one name with the numbers of the window of now and of the window " +
		"before it, like id:8 and id:7"
	for _, test := range []struct{ send, want string }{
		{upstashSlide + "s:u:1800000000 s:u:1800000000 3 1800000000400 1000 1", names},
		{upstashSlide + "s:u:1799999999 s:u:1799999998 3 1800000000400 1000 1", names},
		{upstashSlide + "s:u:1800000000 s:v:1799999999 3 1800000000400 1000 1", names},
		{upstashSlide + "1800000000 1799999999 3 1800000000400 1000 1", names},
		{newUpstash + "3 s:u:30000000 s:u:29999999 dynamic 3 1800000000400 60000 1", "-" + string("ERR weir knows no "+
			"dynamicLimits of @upstash/ratelimit: the last key must be empty")},
		{newUpstash + "1 s:u:30000000 3 1800000000400 60000 1", "-ERR slidingWindow takes 3 keys and 4 arguments"},
		{upstashSlide + "s:u:1 s:u:0 3 1000.5 1000 1", "-ERR ARGV[2] must be a whole number, not '1000.5'"},
		{upstashSlide + "s:u:1 s:u:0 3 1000 0 1", "-ERR ARGV[3] must be above 0, not '0'"},
		{upstashTake + "s:u 3 1000 0 1800000009000 1", "-ERR ARGV[3] must be above 0, not '0'"},
		{upstashSlide + strings.Repeat("k", 509) + ":1 " + strings.Repeat("k", 509) + ":0 3 1000 1000 1",
			"-ERR key must be 1 to 512 bytes, not 515"},
		{upstashReset + strings.Repeat("k", 513) + " null", "-" + string(errPatternLong)},
	} {
		assert.Equal(t, test.want, c.say(test.send), test.send)
	}
	assert.Equal(t, calls, srv.lim.Calls)
	assert.Equal(t, keys, srv.lim.Len(0))
}

// TestUpstashReset checks that the script which deletes what a pattern matches deletes these keys alone, and none that
// its user may not use.
func TestUpstashReset(t *testing.T) {
	srv, _ := usersServer(t, "", "user a on nopass ~app:* +@all")
	c := srv.client(t).as("a", "x")
	for _, key := range []string{"app:u:1", "app:u:2", "app:v:1"} {
		require.Equal(t, "1", c.say("INCR "+key))
	}
	require.Equal(t, "2", c.say(upstashSlide+"app:u:1 app:u:0 3 1000 1000 1"))
	require.Equal(t, "1", c.say("SCRIPT EXISTS 54bd274ddc59fb3be0f42deee2f64322a10e2b50"))
	require.Equal(t, "nil", c.say(upstashReset+"app:u:* null"))
	require.Equal(t, "nil", c.say(upstashReset+"app:u:* null"), "nothing matches any more")
	require.Equal(t, "app:v:1", c.say("KEYS *"))
	require.Equal(t, "OK", c.say("MULTI"))
	require.Equal(t, "-"+string(errAlone), c.say(upstashReset+"app:v:* null"))
	require.Equal(t, "-"+string(errExecAbort), c.say("EXEC"))

	boss, _ := usersServer(t, "", "user b on nopass ~* +@all\nuser a on nopass ~app:* +@all")
	require.Equal(t, "1", boss.client(t).as("b", "x").say("INCR other:1"))
	require.Equal(t, "-"+string(service.ErrNoKey), boss.client(t).as("a", "x").say(upstashReset+"other:* null"))
	require.EqualValues(t, 1, boss.lim.Len(0))
	require.JSONEq(t, `{"result": null}`,
		rest(newHTTP(srv.Shared), "/", `["EVALSHA", "54bd274ddc59fb3be0f42deee2f64322a10e2b50", 1, "app:v:*", "null"]`,
			bearer("a:x")).Body.String())
	require.Zero(t, srv.lim.Len(0))
}
