package commands

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/server/httpapi"
)

// TestBlacklistOfNetworks checks which addresses a network denies, in which commands, and what the answers say.
func TestBlacklistOfNetworks(t *testing.T) {
	c := newTestServer(t, Config{BlacklistKey: blacklistKey}).client(t)
	c.say("RL.POLICY SET p LIMIT TOKENBUCKET 1/s 5")
	require.Equal(t, "2", c.say("SADD rl:blacklist:ip 192.0.2.0/24 2001:db8:a::/48"))
	require.Equal(t, "0", c.say("SADD rl:blacklist:ip ::ffff:192.0.2.0/120 2001:0DB8:A::/48"), "the same networks")
	require.Equal(t, "192.0.2.0/24 2001:db8:a::/48", c.say("SMEMBERS rl:blacklist:ip"))
	for i, in := range []string{"192.0.2.0", "192.0.2.255", "::ffff:192.0.2.9", "64:ff9b::192.0.2.9", "2001:db8:a::",
		"2001:db8:a:ffff::9", "2001:db8:a:7::/64"} {
		for _, key := range []string{in, "ip:" + in, "login|" + in, "a|b|ip:" + in} {
			require.Equal(t, "0 0 -1 -1 5", c.say("RL.TOKENBUCKET "+key+" 1/s 5"), key)
			require.Equal(t, "0 0 -1 -1 5 p", c.say("RL.CHECK p "+key), key)
		}
		require.Equal(t, "0 0 -1 -1 5 p", c.say(fmt.Sprintf("RL.CHECK p user:%d FROM %s", i, in)), in)
		require.Equal(t, "1", c.say("SISMEMBER rl:blacklist:ip "+in), in)
	}
	for i, out := range []string{"192.0.1.255", "192.0.3.0", "::ffff:192.0.3.9", "2001:db8:9:ffff::", "2001:db8:b::",
		"64:ff9b::192.0.3.9"} {
		for _, key := range []string{out, "ip:" + out, "login|" + out, "a|b|ip:" + out} {
			require.Contains(t, c.say("RL.TOKENBUCKET "+key+" 1/s 5"), "1 ", key)
		}
		require.Contains(t, c.say(fmt.Sprintf("RL.CHECK p user:%d FROM %s", i, out)), "1 ", out)
		require.Equal(t, "0", c.say("SISMEMBER rl:blacklist:ip "+out), out)
	}
	for _, key := range []string{"user:192.0.2.9", "192.0.2.9|x", "rl:auth:192.0.2.9", "x192.0.2.9"} {
		require.Contains(t, c.say("RL.TOKENBUCKET "+key+" 1/s 5"), "1 ", "no address: "+key)
	}
	require.Equal(t, "1 1 0", c.say("SMISMEMBER rl:blacklist:ip 192.0.2.0/24 192.0.2.128/25 192.0.2.0/23"))
	require.Equal(t, "0", c.say("SREM rl:blacklist:ip 192.0.2.9"), "a member is lifted by its own name")
	require.Equal(t, "1", c.say("SISMEMBER rl:blacklist:ip 192.0.2.9"))
	require.Equal(t, "1", c.say("SREM rl:blacklist:ip 192.0.2.0/24"))
	require.Equal(t, "1", c.say("RL.UNBLOCK ip:2001:db8:a::/48"))
	require.Contains(t, c.say("RL.TOKENBUCKET 192.0.2.9 1/s 5"), "1 ")
	require.Contains(t, c.say("RL.CHECK p user:1 FROM 2001:db8:a::9"), "1 ")
	require.Equal(t, "-ERR member must be the network 10.0.0.0/8 or the address 10.1.2.3, not '10.1.2.3/8'",
		c.say("SADD rl:blacklist:ip 192.0.2.1 10.1.2.3/8"))
	require.Contains(t, c.say("RL.CHECK p user:1 FROM 192.0.2.0/24"), "-ERR FROM must be an IP address")
	require.Equal(t, "0", c.say("SCARD rl:blacklist:ip"), "an error must not change the set")
}

// TestANetworkThatDeniesIsNamed checks that every description of a denial names the block of the network, its reason
// and its end. The block that ends last counts.
func TestANetworkThatDeniesIsNamed(t *testing.T) {
	h, s := checked(t, Config{BlacklistKey: blacklistKey}, httpapi.CheckProtected)
	c := s.client(t)
	c.say("RL.BLOCK ip:192.0.2.9 1m EVERYWHERE")
	require.Equal(t, "OK", c.say("RL.BLOCK ip:192.0.2.0/24 1h EVERYWHERE REASON flood"))
	why := "blocked by RL.BLOCK 'ip:192.0.2.0/24' EVERYWHERE for another 3600000 ms: flood"
	require.Equal(t, "its address is "+why,
		c.value("RL.EXPLAIN RL.TOKENBUCKET u1 1/s 5 FROM 192.0.2.9").get("why").text)
	require.Equal(t, "its address is "+why, c.value("RL.EXPLAIN RL.CHECK api u1 FROM 192.0.2.9").get("why").text)
	for _, key := range []string{"192.0.2.9", "login|ip:192.0.2.9"} {
		require.Equal(t, "the key is "+why, c.value("RL.EXPLAIN RL.TOKENBUCKET "+key+" 1/s 5").get("why").text)
		require.Equal(t, "ip:192.0.2.0/24", c.value("RL.INSPECT "+key).get("blocked_by").text)
	}
	require.Equal(t, http.StatusTooManyRequests, askFrom(h, here, "/check/api?key=192.0.2.77", "X-Real-IP", "").Code)
	require.Equal(t, http.StatusTooManyRequests,
		askFrom(h, here, "/check/api?from_header=X-Real-IP&key=u2", "X-Real-IP", "192.0.2.77").Code)
	c.say("RL.UNBLOCK ip:192.0.2.0/24")
	require.Contains(t, c.value("RL.EXPLAIN RL.TOKENBUCKET u1 1/s 5 FROM 192.0.2.9").get("why").text,
		"'ip:192.0.2.9' EVERYWHERE for another 60000 ms")
}

// TestBlacklistScan checks that SSCAN answers every member once, in steps, while other members come and go.
func TestBlacklistScan(t *testing.T) {
	c := newTestServer(t, Config{BlacklistKey: blacklistKey}).client(t)
	require.Equal(t, "0 ", c.say("SSCAN rl:blacklist:ip 0"))
	var want []string
	for i := range 300 {
		want = append(want, fmt.Sprintf("10.0.%d.%d", i/250, i%250))
		require.Equal(t, "1", c.say("SADD rl:blacklist:ip "+want[i]))
	}
	for _, count := range []string{"", " COUNT 1", " COUNT 7", " COUNT 1000"} {
		var seen []string
		steps, cursor := 0, "0"
		for done := false; !done; steps++ {
			other := fmt.Sprint(" 172.16.0.", steps%200)
			c.say("SADD rl:blacklist:ip" + other)
			words := strings.Fields(c.say("SSCAN rl:blacklist:ip " + cursor + count))
			for _, member := range words[1:] {
				if strings.HasPrefix(member, "10.") {
					seen = append(seen, member)
				}
			}
			c.say("SREM rl:blacklist:ip" + other)
			cursor, done = words[0], words[0] == "0"
		}
		slices.Sort(seen)
		require.Equal(t, slices.Sorted(slices.Values(want)), seen, "each once, by steps of"+count)
		require.Equal(t, count == " COUNT 1000", steps == 1, "%d steps of%s", steps, count)
	}
	require.Equal(t, "0 10.0.0.77", c.say("SSCAN rl:blacklist:ip 0 MATCH *.0.77 COUNT 1000"))
	for _, bad := range []string{"x", "-1", "0 COUNT 0", "0 TYPE set", "0 MATCH", "0 x y"} {
		require.Contains(t, c.say("SSCAN rl:blacklist:ip "+bad), "-ERR ", bad)
	}
}

// TestOtherSetCommandsOnTheBlacklist checks that a set command that weir does not have names those that it has.
func TestOtherSetCommandsOnTheBlacklist(t *testing.T) {
	c := newTestServer(t, Config{BlacklistKey: blacklistKey}).client(t)
	works := "SADD, SREM, SISMEMBER, SMISMEMBER, SMEMBERS, SCARD and SSCAN work on it"
	for _, send := range []string{"SPOP rl:blacklist:ip", "SRANDMEMBER rl:blacklist:ip 2", "SINTER a rl:blacklist:ip",
		"SUNIONSTORE a b rl:blacklist:ip", "SMOVE rl:blacklist:ip a 192.0.2.1", "SDIFF rl:blacklist:ip"} {
		require.Contains(t, c.say(send), works, send)
	}
	require.NotContains(t, c.say("SPOP k"), "SADD")
}
