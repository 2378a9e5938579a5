package commands

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/server/service"
)

// TestBlockEverywhere checks that one command blocks an address for every decision that asks about it, and that looks
// name this block.
func TestBlockEverywhere(t *testing.T) {
	c := newTestServer(t, Config{}).client(t)
	c.say("RL.POLICY SET p LIMIT TOKENBUCKET 1/s 5")
	require.Equal(t, "OK", c.say("RL.BLOCK ip:192.0.2.66 1h"))
	require.Equal(t, "1 9 0 1000 10", c.say("RL.TOKENBUCKET login|ip:192.0.2.66 1/s 10"),
		"a block of this key alone must not cover login|ip:192.0.2.66")
	require.Equal(t, "OK", c.say("RL.BLOCK ip:192.0.2.66 1h REASON abuse everywhere"))
	for _, send := range []string{
		"RL.TOKENBUCKET login|ip:192.0.2.66 1/s 10", "RL.TOKENBUCKET ip:192.0.2.66 1/s 10", "RL.CHECK p ip:192.0.2.66",
		"RL.CHECK p a|ip:192.0.2.66",
		"RL.CHECK p 192.0.2.66", "RL.FIXED web|192.0.2.66 1h 9", "RL.FIXED new|ip:192.0.2.66 1h 9",
		"RL.STRIKE s|ip:192.0.2.66 1h 3 1m", "RL.RESERVE p ip:192.0.2.66 1 1m",
	} {
		require.Contains(t, c.say(send), "0 0 3600000 ", send)
	}
	require.Equal(t, "1 10 0 3600 3600", c.say("CL.THROTTLE cell|ip:192.0.2.66 9 1 1"),
		"a block everywhere must also cover a dialect")
	why := "the key is blocked by RL.BLOCK 'ip:192.0.2.66' EVERYWHERE for another 3600000 ms: abuse"
	require.Equal(t, why, c.value("RL.EXPLAIN RL.TOKENBUCKET login|ip:192.0.2.66 1/s 10").get("why").text)
	require.Equal(t, why, c.value("RL.EXPLAIN RL.CHECK p a|ip:192.0.2.66").get("why").text)
	require.Equal(t, "the key is blocked for another 3600000 ms: abuse",
		c.value("RL.EXPLAIN RL.CHECK p ip:192.0.2.66").get("why").text)
	for _, key := range []string{"ip:192.0.2.66", "login|ip:192.0.2.66", "idle|ip:192.0.2.66"} {
		require.Equal(t, "ip:192.0.2.66", c.value("RL.INSPECT "+key).get("blocked_by").text, key)
	}
	require.Equal(t, "0", c.say("EXISTS idle|ip:192.0.2.66"))
	require.Equal(t, "1", c.say("RL.UNBLOCK ip:192.0.2.66"))
	require.Equal(t, "1 8 0 2000 10", c.say("RL.TOKENBUCKET login|ip:192.0.2.66 1/s 10"))
	require.Equal(t, "", c.say("RL.INSPECT idle|ip:192.0.2.66"))
}

// TestBlockEverywhereIsForUsersOfAllKeys checks that a user of some keys can neither lift nor replace a block of other
// keys.
func TestBlockEverywhereIsForUsersOfAllKeys(t *testing.T) {
	srv, _ := usersServer(t, "", "user boss on "+hashOf("pb")+" ~* +@all\nuser app on "+hashOf("pa")+" ~app:* +@all\n")
	boss, app := srv.client(t).as("boss", "pb"), srv.client(t).as("app", "pa")
	require.Equal(t, "OK", app.say("RL.BLOCK app:1 1h"))
	require.Equal(t, "OK", boss.say("RL.BLOCK app:1 1h EVERYWHERE"))
	stays := "-" + string(service.ErrEverywhereStays)
	require.Equal(t, "OK", app.say("RL.BLOCK app:1 1ms"), "it keeps the block everywhere")
	for _, send := range []string{"RL.UNBLOCK app:1", "RL.UNBLOCK app:1 ID t"} {
		require.Equal(t, stays, app.say(send), send)
	}
	require.Contains(t, app.say("RL.BLOCK app:1 1h EVERYWHERE"), "-NOPERM")
	require.Equal(t, "0 0 3600000 3600000 5", boss.say("RL.TOKENBUCKET other|app:1 1/s 5"))
	require.Equal(t, "OK", app.say("RL.BLOCK app:2 1h"))
	require.Equal(t, "1", app.say("RL.UNBLOCK app:2"))
	require.Equal(t, "1", boss.say("RL.UNBLOCK app:1"))
	require.Equal(t, "1 4 0 1000 5", boss.say("RL.TOKENBUCKET other|app:1 1/s 5"))
}

// TestBlockEverywhereOfAnAddressWrittenOtherwise checks that an address in a form that no decision asks about is an
// error, and not a block without effect.
func TestBlockEverywhereOfAnAddressWrittenOtherwise(t *testing.T) {
	c := newTestServer(t, Config{}).client(t)
	for key, want := range map[string]string{
		"192.0.2.66":            "must be ip:192.0.2.66 to reach",
		"ip:::ffff:192.0.2.66":  "must be ip:192.0.2.66 to reach",
		"ip:2001:db8:0:7::1":    "must be ip:2001:db8:0:7::/64 to reach",
		"2001:db8:0:7::/64":     "must be ip:2001:db8:0:7::/64 to reach",
		"ip:2001:DB8:0:7::/64":  "must be ip:2001:db8:0:7::/64 to reach",
		"ip:2001:db8:0:7::1/64": "must be ip:2001:db8:0:7::/64 to reach",
		"ip:fe80::1%eth0":       "must be ip:fe80::/64 to reach",
		"ip:192.0.2.66/32":      "must be ip:192.0.2.66 to reach",
		"192.0.2.0/24":          "must be ip:192.0.2.0/24 to reach",
		"ip:192.0.2.66/24":      "must be the network 192.0.2.0/24 or the address 192.0.2.66, not",
		"ip:0.0.0.0/0":          "must be an IP address like",
		"ip:2001:DB8::/48":      "must be ip:2001:db8::/48 to reach",
		"ip:2001:db8::/96":      "must be ip:2001:db8::/64 to reach",
		"ip:::/0":               "must be an IP address like",
	} {
		require.Contains(t, c.say("RL.BLOCK "+key+" 1h EVERYWHERE"), "-ERR key of a block EVERYWHERE "+want, key)
		require.Equal(t, "0", c.say("RL.UNBLOCK "+key), "nothing was blocked")
		require.Equal(t, "OK", c.say("RL.BLOCK "+key+" 1h"), "of exactly this key")
	}
	for _, key := range []string{
		"ip:192.0.2.66", "ip:2001:db8:0:7::/64", "ip:192.0.2.0/24", "ip:2001:db8::/48", "192.0.2", "ip:192.0.2.66:80", "user:1", "192.0.2.66|a", "ip:",
	} {
		require.Equal(t, "OK", c.say("RL.BLOCK "+key+" 1h EVERYWHERE"), key)
	}
}

// TestBlocksEverywhereHaveABound checks that the error states the bound.
func TestBlocksEverywhereHaveABound(t *testing.T) {
	c := newTestServer(t, Config{BlacklistKey: blacklistKey}).client(t)
	fillBlacklist(t, c, engine.MaxBlocksEverywhere)
	require.Equal(t, "-ERR at most 100000 blocks EVERYWHERE may be in force, and this one was not set: RL.UNBLOCK "+
		"one, or block single keys", c.say("RL.BLOCK ip:198.51.100.1 1h EVERYWHERE"))
}
