package commands

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/servertest"
)

// mark begins each stored name of another database than 0. No reply may have it.
const mark = "\x00db"

// TestDatabasesKeepTheirKeys checks what SELECT changes, for each kind of state.
func TestDatabasesKeepTheirKeys(t *testing.T) {
	srv := newTestServer(t, Config{})
	c, other := srv.client(t), srv.client(t)
	script := func(line string) string {
		t.Helper()
		var all []string
		for _, send := range strings.Split(line, "; ") {
			all = append(all, c.say(send))
		}
		return strings.Join(all, "; ")
	}
	require.Equal(t, "1", c.say("RL.POLICY SET p LIMIT FIXED FOREVER 10"))
	fill := "RL.FIXED k FOREVER 5; RL.CHECK p k; SET s v; INCR n; RL.ACQUIRE slots 2 0 HOLDER me; " +
		"RL.BLOCK b FOREVER; " +
		"RL.RESERVE p held 4 1m ID hold; RL.FIXED once FOREVER 5 ID x; RL.FIXED once FOREVER 5 ID x; RL.CHECK p c p d COST 2"
	want := "1 4 0 -1 5; 1 9 0 -1 10 p; OK; 1; 1 1 0 -1 2 me; OK; " +
		"1 6 0 -1 10 hold; 1 4 0 -1 5; 1 4 0 -1 5; 1 8 0 -1 10 p"
	for _, database := range []string{"0", "3", "15"} {
		require.Equal(t, "OK", c.say("SELECT "+database))
		require.Equal(t, want, script(fill), "in database %s", database)
	}
	look := "DBSIZE; GET s; GET n; TTL k; EXISTS k policy|p|0|k; RL.HOLDS p held; " +
		"TYPE policy|p|0|held; RL.FIXED b FOREVER 5"
	seen := "10; v; 1; -1; 2; 0 hold 4 0 60000 return; fixed; 0 0 -1 -1 5"
	require.Equal(t, seen, script(look))
	names := "b k n once policy|p|0|c policy|p|0|d policy|p|0|held policy|p|0|k s slots"
	sorted := func(reply string) string {
		words := strings.Fields(reply)
		slices.Sort(words)
		return strings.Join(words, " ")
	}
	require.Equal(t, names, sorted(c.say("KEYS *")))
	require.Equal(t, "0 "+names, sorted(c.say("SCAN 0 COUNT 10000")))
	require.Contains(t, " "+names+" ", " "+c.say("RANDOMKEY")+" ")
	require.Equal(t, names, sorted(other.say("KEYS *")))
	require.Contains(t, c.say("INFO keyspace"), "db0:keys=10,expires=10,avg_ttl=0\r\ndb3:keys=10,expires=10,avg_ttl=0\r\n"+
		"db15:keys=10,")
	require.Contains(t, c.say("CLIENT LIST"), " db=15 ")
	require.Contains(t, other.say("CLIENT INFO"), " db=0 ")

	require.Equal(t, "b", c.value("RL.INSPECT b").get("blocked_by").text)
	require.Equal(t, "policy|p|0|k", c.value("RL.EXPLAIN RL.CHECK p k").get("limiter").text)
	require.Equal(t, "1; 1; 1", script("RL.UNBLOCK b; RL.RESET policy|p|0|k; RL.CANCEL hold"))
	require.Equal(t, "OK; 0; OK; 10", script("FLUSHDB; DBSIZE; SELECT 3; DBSIZE"))
	require.Equal(t, "10", other.say("DBSIZE"))
	require.Equal(t, "0 ", flat(t, other.raw("RL.HOLDS", "p", mark+"3|held")), "no client may send a stored name")
	require.Equal(t, "RESET", c.say("RESET"))
	require.Equal(t, seen, script(look), "after RESET in database 0")
	require.Equal(t, "OK", c.say("FLUSHDB"))
	require.Equal(t, "OK; "+seen, script("SELECT 3; "+look))
	require.Equal(t, "OK; 0; OK; 0", script("FLUSHALL; DBSIZE; SELECT 0; DBSIZE"))
	require.Equal(t, "p", other.value("RL.POLICY GET p").get("name").text)
}

// TestSelectIsRefused checks the indexes that SELECT refuses, and that it then changes nothing.
func TestSelectIsRefused(t *testing.T) {
	c := newTestServer(t, Config{BlacklistKey: blacklistKey}).client(t)
	require.Equal(t, "-"+string(errDBIndex), c.say("SELECT 16"))
	require.Equal(t, "-"+string(errDBIndex), c.say("SELECT -1"))
	require.Equal(t, "-ERR value is not an integer or out of range: index must be 0 to 15, not 'a'", c.say("SELECT a"))
	require.Contains(t, c.say("CLIENT INFO"), " db=0 ")
	reserved := "-ERR keys that begin with"
	for _, key := range []string{mark + "3|k", "policy|p|0|" + mark + "3|k"} {
		for _, send := range [][]string{
			{"RL.FIXED", key, "1d", "5"}, {"SET", key, "v"}, {"RL.RESET", key}, {"RL.REFUND", key, "1"},
			{"RL.BLOCK", key, "1m"}, {"RL.COMMIT", key, "1"}, {"RL.CHECK", "p", "a", "p", key},
			{"RL.RESERVE", "p", "k", "1", "1m", "ID", key}} {
			require.Contains(t, c.raw(send...), reserved, "%q", send)
		}
	}

	require.Equal(t, "OK", c.say("SELECT 1"))
	require.Contains(t, c.say("RL.BLOCK ip:192.0.2.1 1m EVERYWHERE"),
		"-ERR a block EVERYWHERE belongs to all databases")
	require.Contains(t, c.say("SADD "+blacklistKey+" 192.0.2.1"), "which is in database 0")
	require.Equal(t, "OK", c.say("SET "+blacklistKey+" v"), "an ordinary key of another database")
	long := strings.Repeat("k", engine.MaxDatabaseKeyLen)
	require.Equal(t, "OK", c.say("SET "+long+" v"))
	require.Equal(t, "v", c.say("GET "+long))
	require.Equal(t, "-ERR key must be 1 to 507 bytes, not 508", c.say("SET "+long+"k v"))
	require.Equal(t, "1", c.say("DEL "+long))
	require.Equal(t, "-ERR key must be 1 to 507 bytes, not 508", c.say("RL.CHECK p a p "+long+"k"))
	require.Equal(t, "-ERR id must be 1 to 59 bytes, not 60", c.say("RL.CANCEL "+long[:60]))
	require.Equal(t, "-ERR key must be 1 to 512 bytes, not 0", c.say(`SET "" v`))
}

// TestSelectNeedsEveryMember checks that a cluster refuses other databases until all members know them.
func TestSelectNeedsEveryMember(t *testing.T) {
	f := servertest.NewFakeCluster()
	c, _ := clusterClient(t, f, "a", Config{})
	require.Equal(t, "OK", c.say("SELECT 0"))
	require.Equal(t, "-"+limiter.ErrOldMember.Reply(limiter.ErrOldMember), c.say("SELECT 1"))
	f.Change(func(t *limiter.Topology) { t.Format = limiter.DatabasesFormat })
	require.Equal(t, "OK", c.say("SELECT 1"))
}

// TestSelectInATransaction checks that the commands behind a SELECT run in its database, and those before it do not.
func TestSelectInATransaction(t *testing.T) {
	c := newTestServer(t, Config{}).client(t)
	for _, send := range []string{"MULTI", "INCR n", "DBSIZE", "SELECT 2", "INCR n", "INCR n", "DBSIZE",
		"SELECT 99", "GET n",
		"SELECT 4", "INCR n"} {
		c.say(send)
	}
	require.Equal(t, "*10\r\n:1\r\n:1\r\n+OK\r\n:1\r\n:2\r\n:1\r\n-"+string(errDBIndex)+"\r\n$1\r\n2\r\n+OK\r\n:1\r\n",
		c.raw("EXEC"))
	require.Contains(t, c.say("CLIENT INFO"), " db=4 ")
	require.Equal(t, "1", c.say("GET n"))
	c.say("SELECT 0")
	require.Equal(t, "1", c.say("GET n"))
	for _, send := range []string{"MULTI", "FLUSHDB", "SELECT 2"} {
		c.say(send)
	}
	require.Equal(t, "OK OK", c.say("EXEC"))
	require.Equal(t, "2", c.say("GET n"), "FLUSHDB is of the database before the SELECT")
	c.say("SELECT 0")
	require.Equal(t, "0", c.say("DBSIZE"))
}

// TestOthersHearOfDatabases checks what other clients see of a command in a database: MONITOR, messages, events and the
// audit log have the client's key, and waiting requests of other databases stay asleep.
func TestOthersHearOfDatabases(t *testing.T) {
	srv := newTestServer(t, Config{})
	c, monitor, listener := srv.client(t), srv.client(t), srv.client(t)
	listener.say("PSUBSCRIBE weir:*")
	c.say("RL.POLICY SET p LIMIT FIXED FOREVER 10 NOTIFY 80%")
	c.say("RL.POLICY OVERRIDE p vip LIMIT FIXED FOREVER 20")
	c.say("SELECT 7")
	monitor.say("MONITOR")
	require.Equal(t, "1 0 0 -1 1", c.say("RL.FIXED k FOREVER 1"))
	require.Equal(t, "0 0 -1 -1 1", c.say("RL.FIXED k FOREVER 1"))
	require.Equal(t, "1 1 0 -1 10 p", c.say("RL.CHECK p k COST 9"))
	require.Equal(t, "1 19 0 -1 20 p", c.say("RL.CHECK p vip"), "an override is common to all databases")
	require.Equal(t, "0 0 1000 1000 1", c.say("RL.STRIKE failed 1s 1 1s"))
	lines := monitor.fake.messages()
	require.Contains(t, lines, ` [7 `)
	require.Contains(t, lines, `"RL.FIXED" "k" "FOREVER" "1"`)
	heard := listener.fake.messages()
	require.Contains(t, heard, "weir:denied:fixed\r\n$1\r\nk\r\n")
	require.Contains(t, heard, `{"key":"failed","seconds":1,"db":7}`)
	event := c.value("RL.EVENTS AFTER 0")
	require.Contains(t, c.say("RL.EVENTS AFTER 0"), "kind threshold policy p key k id ")
	require.Contains(t, c.say("RL.EVENTS AFTER 0"), "limit 10 db 7")
	require.Contains(t, c.say("XRANGE weir:events - +"), "limit 10 db 7")
	require.NotContains(t, lines+heard+event.text, mark)
	require.Equal(t, "failed 1 0 k 1 0", c.say("RL.TOP DENIED"))
	c.say("SELECT 0")
	require.Equal(t, "", c.say("RL.TOP DENIED"))
}

// differences are the memory of keys, and what is random.
var differences = regexp.MustCompile(`\$5\r\nbytes\r\n(:|\$\d+\r\n)\d+|[0-9a-f]{32,40}|\{[0-9a-z]+\}[A-Z2-7]{26}`)

// otherwise are the commands whose replies or effects depend on the database, the time or the order of hashes. Changes
// of policies are left out, too, because all databases see them.
var otherwise = []string{"flushall", "select", "reset", "quit", "info", "time", "lastsave", "client|info", "client|id",
	"client|list", "client|kill", "acl|genpass", "memory|usage", "randomkey", "rl.events", "xread", "xrange", "xlen",
	"memory|stats", "slowlog|get", "slowlog|len", "shutdown", "debug|sleep", "rl.unblock", "monitor",
	"client|reply", "client|pause", "debug|digest", "weir.backup|start", "latency|doctor", "cluster|myid", "bgsave",
	"weir.unsupported", "sentinel|get-master-addr-by-name", "sentinel|myid", "sentinel|master", "sentinel|masters"}

// TestEveryCommandStaysInItsDatabase sends random commands of the whole table to database 3, and the same commands to
// database 0 of another server. The replies must be the same, none has a stored name, and database 0 of the first
// server does not change.
func TestEveryCommandStaysInItsDatabase(t *testing.T) {
	for seed := range uint64(8) {
		synctest.Test(t, func(t *testing.T) { compareDatabases(t, rand.New(rand.NewPCG(seed, 2))) })
	}
}

func compareDatabases(t *testing.T, random *rand.Rand) {
	servers := [2]*testServer{newTestServer(t, Config{EnableDebug: true}), newTestServer(t, Config{EnableDebug: true})}
	var clients [2]*testClient
	for i, srv := range servers {
		boss := srv.client(t)
		for _, send := range []string{"RL.POLICY SET p LIMIT FIXED 1d 30 LIMIT TOKENBUCKET 1/h 40",
			"RL.POLICY SET named LIMIT FIXED 1d 30 LAYOUT app:{policy}:{key}",
			"RL.POLICY OVERRIDE p app:* LIMIT FIXED 1d 50"} {
			require.NotContains(t, boss.say(send), "-ERR")
		}
		clients[i] = srv.client(t)
	}
	guard := servers[0].client(t)
	for _, send := range []string{"RL.FIXED theirs 1d 3", "RL.CHECK p theirs", "RL.CHECK named theirs",
		"SET value secret",
		"INCR counter", "RL.ACQUIRE slots 3 1h HOLDER me", "RL.RESERVE p theirs 1 1h ID hold", "RL.BLOCK blocked 1h"} {
		require.NotContains(t, guard.say(send), "-ERR")
	}
	require.Equal(t, "OK", clients[0].say("SELECT 3"))
	before := seenBy(guard)
	for range 3000 {
		send := anyCommand(random, clients[0].sess.srv.table)
		cmd, err := clients[0].sess.srv.table.resolve(bytesOf(send...))
		if err == nil && (slices.Contains(otherwise, cmd.Full) || cmd.top().name == "RL.POLICY" ||
			slices.ContainsFunc(send, isEverywhere)) {
			continue
		}
		replies := [2]string{}
		for i, c := range clients {
			replies[i] = inOrder(t, cmd, differences.ReplaceAllString(c.raw(send...), ""))
		}
		require.Equal(t, replies[1], replies[0], "%q", send)
		require.NotContains(t, replies[0], mark, "%q", send)
		require.NotContains(t, clients[0].fake.messages(), mark, "%q", send)
		for i, c := range clients {
			if c.sess.Closing || c.sess.onlyTopics() {
				clients[i] = servers[i].client(t)
				if i == 0 {
					clients[0].say("SELECT 3")
				}
			}
		}
	}
	require.Equal(t, before, seenBy(guard))
	clients[0] = servers[0].client(t)
	require.Equal(t, "OK", clients[0].say("SELECT 3"))
	clients[0].say("SET one more")
	require.NotEqual(t, "0", clients[0].say("DBSIZE"))
	require.Equal(t, "OK", clients[0].say("FLUSHDB"))
	require.Equal(t, "0", clients[0].say("DBSIZE"))
	require.Equal(t, before, seenBy(guard))
}

func isEverywhere(word string) bool { return strings.EqualFold(word, "EVERYWHERE") }

// inOrder sorts the reply of a command that lists keys in the order of their hashes.
func inOrder(t *testing.T, cmd *command, reply string) string {
	if cmd == nil || !slices.Contains([]string{"keys", "scan", "rl.top", "client|list"}, cmd.Full) {
		return reply
	}
	words := strings.Split(reply, "\r\n")
	slices.Sort(words)
	return strings.Join(words, "\n")
}

// seenBy describes everything that a client sees of its database.
func seenBy(c *testClient) string {
	var all []string
	for _, name := range strings.Fields(c.say("KEYS *")) {
		all = append(all, name+": "+c.say("RL.INSPECT "+name)+c.say("GET "+name))
	}
	slices.Sort(all)
	return c.say("DBSIZE") + c.say("RL.HOLDS p theirs") + strconv.Itoa(len(all)) + strings.Join(all, "\n")
}
