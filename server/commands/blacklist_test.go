package commands

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/server/httpapi"
	"github.com/weir-project/weir/server/servertest"
)

const blacklistKey = "rl:blacklist:ip"

// TestBlacklist checks that one key is the set of the addresses that are blocked everywhere.
func TestBlacklist(t *testing.T) {
	c := newTestServer(t, Config{BlacklistKey: blacklistKey}).client(t)
	for _, exchange := range [][2]string{
		{"SISMEMBER rl:blacklist:ip 192.0.2.66", "0"}, {"SCARD rl:blacklist:ip", "0"}, {"TYPE rl:blacklist:ip", "none"},
		{"EXISTS rl:blacklist:ip", "0"}, {"SMEMBERS rl:blacklist:ip", ""},
		{"SADD rl:blacklist:ip 192.0.2.66 192.0.2.66 2001:db8:0:7::1", "2"},
		{"SADD rl:blacklist:ip 192.0.2.66", "0"}, {"TYPE rl:blacklist:ip", "set"},
		{"EXISTS rl:blacklist:ip user:1 rl:blacklist:ip", "2"},
		{"DEL user:1 rl:blacklist:ip",
			"-ERR rl:blacklist:ip is the set of blocked addresses, use SREM to take members out of it"},
		{"SCARD rl:blacklist:ip", "2"},
		{"SISMEMBER rl:blacklist:ip 192.0.2.66", "1"}, {"SISMEMBER rl:blacklist:ip 192.0.2.6", "0"},
		{"SMISMEMBER rl:blacklist:ip 192.0.2.66 unknown 2001:db8:0:7:ffff::9", "1 0 1"},
		{"SMEMBERS rl:blacklist:ip", "192.0.2.66 2001:db8:0:7::/64"}, {"SCARD rl:blacklist:ip", "2"},
		{"RL.TOKENBUCKET 192.0.2.66 1/s 5", "0 0 -1 -1 5"}, {"RL.TOKENBUCKET login|ip:192.0.2.66 1/s 5", "0 0 -1 -1 5"},
		{"RL.UNBLOCK ip:192.0.2.66", "1"}, {"SISMEMBER rl:blacklist:ip 192.0.2.66", "0"},
		{"RL.BLOCK ip:192.0.2.67 1h EVERYWHERE", "OK"}, {"RL.BLOCK user:13 1h EVERYWHERE", "OK"},
		{"RL.BLOCK ip:192.0.2.68 1h", "OK"},
		{"SMEMBERS rl:blacklist:ip", "192.0.2.67 2001:db8:0:7::/64"},
		{"SADD rl:blacklist:ip 192.0.2.67", "0"}, {"RL.FIXED 192.0.2.67 1m 5", "0 0 -1 -1 5"},
		{"SREM rl:blacklist:ip 192.0.2.67 2001:db8:0:7:: 192.0.2.66", "2"}, {"SCARD rl:blacklist:ip", "0"},
		{"RL.FIXED 192.0.2.67 1m 5 COST 0", "1 5 0 0 5"},
	} {
		require.Equal(t, exchange[1], c.say(exchange[0]), exchange[0])
	}
}

// TestBlacklistKnowsAnAddressInEveryForm checks that another form of the address, or another address of the same IPv6
// network, does not escape the list.
func TestBlacklistKnowsAnAddressInEveryForm(t *testing.T) {
	c := newTestServer(t, Config{BlacklistKey: blacklistKey}).client(t)
	c.say("RL.POLICY SET p LIMIT TOKENBUCKET 1/s 5")
	for listed, same := range map[string][]string{
		"192.0.2.66": {"192.0.2.66", "::ffff:192.0.2.66", "::ffff:c000:242", "::FFFF:192.0.2.66",
			"192.0.2.66:443", "[::ffff:192.0.2.66]:80", "192.0.2.66/32", "::ffff:192.0.2.66%eth0"},
		"2001:db8:0:7::1": {"2001:db8:0:7::1", "2001:db8:0:7::", "2001:DB8:0:7:f::",
			"2001:0db8:0000:0007:0000:0000:0000:0001", "[2001:db8:0:7::2]:80", "2001:db8:0:7::/64",
			"2001:db8:0:7::9%eth0", "2001:db8:0:7::5/128"},
		"2001:db8:0:9::/64": {"2001:db8:0:9:1:2:3:4"},
	} {
		require.Equal(t, "1", c.say("SADD rl:blacklist:ip "+listed), listed)
		for i, form := range same {
			require.Equal(t, "1", c.say("SISMEMBER rl:blacklist:ip "+form), form)
			require.Equal(t, "0", c.say("SADD rl:blacklist:ip "+form), form)
			require.Equal(t, "0 0 -1 -1 5 p", c.say(fmt.Sprintf("RL.CHECK p user:%d FROM %s", i, form)), form)
		}
		require.Equal(t, "1", c.say("SREM rl:blacklist:ip "+same[0]), listed)
		require.Equal(t, "0", c.say("SREM rl:blacklist:ip "+listed))
	}
	for _, bad := range []string{
		"host", "192.0.2", "::ffff:192.0.2.66/64", "010.0.0.1", "ip:192.0.2.66", "192.0.2.66,192.0.2.67", "unix:",
		"0.0.0.0/0", "10.0.0.0/7", "::/0", "2000::/15", "192.0.2.0/33", "192.0.2.0/024",
	} {
		for _, send := range []string{"SADD rl:blacklist:ip 192.0.2.1 ", "SREM rl:blacklist:ip "} {
			require.Contains(t, c.say(send+bad), "-ERR member must be an IP address", bad)
		}
		require.Equal(t, "0", c.say("SISMEMBER rl:blacklist:ip "+bad), bad)
		require.Contains(t, c.say("RL.CHECK p user:1 FROM "+bad), "-ERR FROM must be an IP address", bad)
	}
	require.Equal(t, "0", c.say("SCARD rl:blacklist:ip"), "an error must not change the set")
}

// TestFrom checks that the address of the client denies a decision on any key, and that the answer says so.
func TestFrom(t *testing.T) {
	c := newTestServer(t, Config{BlacklistKey: blacklistKey}).client(t)
	c.say("RL.POLICY SET p LIMIT TOKENBUCKET 1/s 5 LIMIT FIXED 1h 9")
	c.say("RL.POLICY SET q LIMIT SLIDING 1s 5 SHADOW")
	decisions := []string{
		"RL.TOKENBUCKET u1 1/s 5", "RL.LEAKYBUCKET u2 1/s 5", "RL.FIXED u3 1m 5", "RL.SLIDING u4 1m 5",
		"RL.SLIDINGCOUNTER u5 1m 5", "RL.ACQUIRE u6 5 1m HOLDER h",
		"RL.STRIKE u7 1m 30 5s", "RL.CHECK p u8", "RL.CHECK q u9", "RL.CHECK p u10 q u11", "RL.RESERVE p u12 1 1m",
	}
	for _, send := range decisions {
		require.Contains(t, c.say(send+" FROM 192.0.2.66"), "1 ", send)
	}
	require.Equal(t, "1", c.say("SADD rl:blacklist:ip 192.0.2.66"))
	for _, send := range decisions {
		require.Contains(t, c.say(send+" FROM 192.0.2.66"), "0 0 -1 -1 ", send)
		require.Contains(t, c.say(send+" FROM 192.0.2.67"), "1 ", send)
		require.Contains(t, c.say(send), "1 ", send)
	}
	require.Equal(t, "0 0 -1 -1 5", c.say("RL.WAIT RL.TOKENBUCKET u1 1/s 5 FROM 192.0.2.66 TIMEOUT 1m"),
		"RL.WAIT must not wait for a blocked address")
	why := "its address is blocked by RL.BLOCK 'ip:192.0.2.66' EVERYWHERE until RL.UNBLOCK lifts it"
	require.Equal(t, why, c.value("RL.EXPLAIN RL.TOKENBUCKET u1 1/s 5 FROM 192.0.2.66").get("why").text)
	require.Equal(t, why, c.value("RL.EXPLAIN RL.CHECK p u1 FROM 192.0.2.66").get("why").text)
	require.NotContains(t, c.value("RL.EXPLAIN RL.CHECK p u1 FROM 192.0.2.67").get("why").text, "blocked")
	require.Equal(t, "OK", c.say("RL.BLOCK ip:192.0.2.67 1h EVERYWHERE"))
	require.Equal(t, "0 0 3600000 3600000 5", c.say("RL.TOKENBUCKET u1 1/s 5 FROM 192.0.2.67"))
	require.Contains(t, c.say("RL.BLOCK u1 1h FROM 192.0.2.67"), "-ERR option must be")
}

// TestBlacklistIsOneKey checks that set commands on another key get an error that names the setting.
func TestBlacklistIsOneKey(t *testing.T) {
	with, without := newTestServer(t, Config{BlacklistKey: blacklistKey}).client(t),
		newTestServer(t, Config{}).client(t)
	for _, send := range []string{"SADD k 192.0.2.1", "SSCAN k 0", "SREM k 192.0.2.1", "SISMEMBER k 192.0.2.1",
		"SMISMEMBER k 192.0.2.1", "SMEMBERS k", "SCARD k"} {
		require.Contains(t, with.say(send),
			"must be rl:blacklist:ip, the set of blocked addresses (--blacklist-key), not 'k'", send)
		require.Contains(t, without.say(send), "--blacklist-key must name its key", send)
	}
	for _, bad := range []string{"policy|p|0|k", string(make([]byte, engine.MaxKeyLen+1))} {
		_, err := NewShared(Config{BlacklistKey: bad}, servertest.NewTableLimiter())
		require.ErrorIs(t, err, ErrBadConfig)
	}
}

// fillBlacklist adds addresses, which begin with 10.0.0.0, to an empty set.
func fillBlacklist(t *testing.T, c *testClient, n int) {
	for i := 0; i < n; {
		add := "SADD rl:blacklist:ip"
		for k := 0; k < 500 && i < n; k++ {
			add += fmt.Sprintf(" 10.%d.%d.%d", i/40_000, i/200%200, i%200)
			i++
		}
		require.NotContains(t, c.say(add), "-")
	}
	require.Equal(t, fmt.Sprint(n), c.say("SCARD rl:blacklist:ip"))
}

// TestBlacklistHasABound checks that the set holds as many addresses as blocks everywhere may be in force.
func TestBlacklistHasABound(t *testing.T) {
	c := newTestServer(t, Config{BlacklistKey: blacklistKey}).client(t)
	fillBlacklist(t, c, engine.MaxBlocksEverywhere)
	require.Contains(t, c.say("SADD rl:blacklist:ip 192.0.2.66"), "no address was added")
	require.Equal(t, "0", c.say("SADD rl:blacklist:ip 10.0.1.1"))
	require.Equal(t, "1", c.say("SREM rl:blacklist:ip 10.0.1.1"))
	require.Equal(t, "1", c.say("SADD rl:blacklist:ip 192.0.2.66"))
	require.Equal(t, fmt.Sprint(engine.MaxBlocksEverywhere), c.say("SCARD rl:blacklist:ip"))
}

// TestBlacklistTakesAllOrNone checks that an SADD whose addresses do not all fit adds none, and that members of the set
// take no space again.
func TestBlacklistTakesAllOrNone(t *testing.T) {
	c := newTestServer(t, Config{BlacklistKey: blacklistKey}).client(t)
	fillBlacklist(t, c, engine.MaxBlocksEverywhere-2)
	require.Equal(t, "-ERR at most 100000 blocks EVERYWHERE may be in force, 99998 are, and this command adds 3: "+
		"no address was added; SREM or RL.UNBLOCK some", c.say("SADD rl:blacklist:ip 192.0.2.1 192.0.2.2 192.0.2.3"))
	require.Equal(t, "99998", c.say("SCARD rl:blacklist:ip"))
	require.Equal(t, "2", c.say("SADD rl:blacklist:ip 192.0.2.1 10.0.0.1 192.0.2.2 192.0.2.1"))
	require.Equal(t, "100000", c.say("SCARD rl:blacklist:ip"))
}

// TestCommandsOnTheBlacklist checks that a command on the key of the set works on the set or is an error, and leaves
// nothing else under the key.
func TestCommandsOnTheBlacklist(t *testing.T) {
	c := newTestServer(t, Config{BlacklistKey: blacklistKey}).client(t)
	require.Equal(t, "-2", c.say("TTL rl:blacklist:ip"))
	require.Empty(t, c.say("KEYS *"))
	require.Equal(t, "1", c.say("SADD rl:blacklist:ip 192.0.2.66"))
	for _, send := range []string{
		"EXPIRE rl:blacklist:ip 60", "PEXPIRE rl:blacklist:ip 60", "EXPIREAT rl:blacklist:ip 60",
		"PERSIST rl:blacklist:ip", "GET rl:blacklist:ip", "SET rl:blacklist:ip 1", "SET rl:blacklist:ip abc",
		"INCR rl:blacklist:ip",
		"APPEND rl:blacklist:ip x", "GETDEL rl:blacklist:ip", "MGET a rl:blacklist:ip",
		"RL.TOKENBUCKET rl:blacklist:ip 1/s 5", "RL.EXPLAIN RL.FIXED rl:blacklist:ip 1m 5",
		"RL.BLOCK rl:blacklist:ip 1h",
		"RL.BLOCK rl:blacklist:ip 1h EVERYWHERE", "RL.REFUND rl:blacklist:ip 1", "CL.THROTTLE rl:blacklist:ip 15 30 60",
		"INCREX rl:blacklist:ip",
	} {
		require.Contains(t, c.say(send), "-WRONGTYPE rl:blacklist:ip is the set of blocked addresses", send)
		require.Equal(t, "rl:blacklist:ip ip:192.0.2.66", sortedKeys(c), send)
	}
	require.Equal(t, "-1", c.say("TTL rl:blacklist:ip"))
	require.Equal(t, "-1", c.say("PTTL rl:blacklist:ip"))
	require.Equal(t, "rl:blacklist:ip", c.say("KEYS rl:*"))
	require.Empty(t, c.say("KEYS other:*"))
	require.Equal(t, "0 rl:blacklist:ip", c.say("SCAN 0 MATCH rl:*"))
	require.Equal(t, "0 rl:blacklist:ip", c.say("SCAN 0 TYPE set"))
	require.Equal(t, "0 ip:192.0.2.66", c.say("SCAN 0 TYPE none"))
	require.Equal(t, "2", c.say("DBSIZE"), "as many as KEYS and SCAN show")
	require.Contains(t, c.say("INFO keyspace"), "db0:keys=2,expires=1,")
	require.Equal(t, "1", c.say("SREM rl:blacklist:ip 192.0.2.66"))
	require.Empty(t, c.say("KEYS rl:*"))
	require.Equal(t, "0 ", c.say("SCAN 0"))
	require.Equal(t, "0", c.say("DBSIZE"))
}

// sortedKeys returns the keys that KEYS lists, the set first.
func sortedKeys(c *testClient) string {
	keys := listOf(c, "KEYS *")
	slices.SortFunc(keys, func(a, b string) int { return strings.Compare(b, a) })
	return strings.Join(keys, " ")
}

// TestBlacklistIsForUsersOfAllKeys checks that a user of this key alone can read the set and not change it, because a
// block affects keys beyond it.
func TestBlacklistIsForUsersOfAllKeys(t *testing.T) {
	srv, _ := usersServer(t, "", "user boss on "+hashOf("pb")+" ~* +@all\nuser app on "+hashOf("pa")+
		" ~rl:* ~ip:* +@all\n")
	srv.cfg.BlacklistKey = blacklistKey
	boss, app := srv.client(t).as("boss", "pb"), srv.client(t).as("app", "pa")
	require.Equal(t, "1", boss.say("SADD rl:blacklist:ip 192.0.2.66"))
	require.Equal(t, "1", app.say("SISMEMBER rl:blacklist:ip 192.0.2.66"))
	require.Contains(t, app.say("SADD rl:blacklist:ip 192.0.2.67"), "-NOPERM")
	require.Contains(t, app.say("SREM rl:blacklist:ip 192.0.2.66"), "-NOPERM")
	require.Equal(t, "192.0.2.66", boss.say("SMEMBERS rl:blacklist:ip"))
}

// TestHTTPCheckFrom checks that a proxy names the header with the client's address, and that the blacklist applies to
// any key. A header that no proxy named has no effect.
func TestHTTPCheckFrom(t *testing.T) {
	h, s := checked(t, Config{BlacklistKey: blacklistKey}, httpapi.CheckProtected)
	c := s.client(t)
	require.Equal(t, "1", c.say("SADD rl:blacklist:ip 192.0.2.66"))
	for i, ask := range []struct {
		query, address string
		status         int
	}{
		{"from_header=X-Real-IP", "192.0.2.66", http.StatusTooManyRequests},
		{"from_header=X-Real-IP", "::ffff:192.0.2.66", http.StatusTooManyRequests},
		{"from_header=X-Real-IP", "192.0.2.67", http.StatusNoContent},
		{"from_header=X-Real-IP", "nowhere", http.StatusNoContent},
		{"cost=1", "192.0.2.66", http.StatusNoContent},
	} {
		key := fmt.Sprint("&key=user:", i)
		require.Equal(t, ask.status, askFrom(h, here, "/check/api?"+ask.query+key, "X-Real-IP", ask.address).Code,
			"%+v", ask)
	}
	forged := askFrom(h, here, "/check/api?from_header=X-Forwarded-For&key=user:42", "X-Forwarded-For", "203.0.113.9",
		"X-Forwarded-For", "192.0.2.66")
	require.Equal(t, http.StatusTooManyRequests, forged.Code, "the proxy's address is the last in the header")
}

// TestTheOldBoundIsNamed checks that an error states the bound that is in force, also while the log has an old form.
func TestTheOldBoundIsNamed(t *testing.T) {
	srv := newTestServer(t, Config{BlacklistKey: blacklistKey})
	srv.lim.Table.SetRules(engine.RulesNetworks)
	c := srv.client(t)
	fillBlacklist(t, c, 999)
	require.Equal(t, "-ERR at most 1000 blocks EVERYWHERE may be in force, 999 are, and this command adds 2: no "+
		"address was added; SREM or RL.UNBLOCK some", c.say("SADD rl:blacklist:ip 192.0.2.1 192.0.2.2"))
	require.Equal(t, "1", c.say("SADD rl:blacklist:ip 192.0.2.1"))
	require.Contains(t, c.say("RL.BLOCK ip:192.0.2.2 1h EVERYWHERE"), "ERR at most 1000 blocks EVERYWHERE")
}
