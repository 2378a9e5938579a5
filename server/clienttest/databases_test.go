package clienttest

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// TestDatabasesAsRedisKeepsThem sends the same random commands to weir and to a Redis 7, with SELECT in pipelines and
// transactions. Every byte of the replies must be equal, but for the order of KEYS.
func TestDatabasesAsRedisKeepsThem(t *testing.T) {
	commands := 50_000
	if testing.Short() {
		commands = 5_000
	}
	seed := uint64(time.Now().UnixNano())
	if fixed := os.Getenv("WEIRTEST_SEED"); fixed != "" {
		seed, _ = strconv.ParseUint(fixed, 10, 64)
	}
	g := &databaseSource{rand.New(rand.NewPCG(seed, 3))}
	redis, weir := talkTo(t, "unix", startRedis(t)), talkTo(t, "tcp", startWeir(t).addr)
	for sent := 0; sent < commands; {
		batch := g.batch()
		want, got := redis.say(t, batch, false), weir.say(t, batch, true)
		for i := range batch {
			if w, g := comparable(want[i]), comparable(got[i]); !sameReply(g, w) {
				t.Fatalf("seed %d, command %d: %s\nredis: %q\nweir:  %q\nin:\n%s", seed, sent+i, batch[i], w, g,
					fmt.Sprint(batch[:i+1]))
			}
		}
		sent += len(batch)
	}
	t.Logf("%d commands, seed %d: 0 differences", commands, seed)
}

type databaseSource struct{ *rand.Rand }

// databaseCalls are the commands. k is a key, v a value, and d a database.
var databaseCalls = strings.Split("SELECT d|SELECT d|SELECT d|SET k v|SET k v NX|GET k|MGET k k|DEL k|DEL k k|"+
	"EXISTS k k|INCR k|APPEND k v|GETDEL k|TYPE k|TTL k|DBSIZE|KEYS *|KEYS k*|KEYS *2|INFO keyspace|EVALSHA k|"+
	"SELECT 16|SELECT x|SELECT -1", "|")

// oneStep are the commands that a transaction of weir carries out in their order.
var oneStep = []string{"SELECT", "SET", "GET", "MGET", "DEL", "INCR", "APPEND", "GETDEL"}

func (g *databaseSource) batch() (batch []call) {
	n := 1 + g.IntN(30)
	multi := g.IntN(3) == 0
	if multi {
		batch = append(batch, call{args: []string{"MULTI"}})
	}
	for range n {
		batch = append(batch, g.next(multi))
	}
	switch {
	case multi && g.IntN(8) == 0:
		batch = append(batch, call{args: []string{"DISCARD"}})
	case multi:
		batch = append(batch, call{args: []string{"EXEC"}})
	case g.IntN(20) == 0:
		batch = append(batch, call{args: []string{[]string{"FLUSHDB", "FLUSHALL", "RESET"}[g.IntN(3)]}})
	}
	return batch
}

func (g *databaseSource) next(multi bool) call {
	words := strings.Fields(databaseCalls[g.IntN(len(databaseCalls))])
	switch {
	case multi && !slices.Contains(oneStep, words[0]): // weir reads after the step of all operations
		words = []string{"GET", "k"}
	case words[0] == "EVALSHA":
		return call{args: []string{"EVALSHA", "1fed031c105d7c0315b3fc2e4a75e697247264f5", "1", g.key(), "script"},
			script: `return redis.call('SETNX', KEYS[1], ARGV[1])`}
	}
	for i, word := range words {
		switch word {
		case "k":
			words[i] = g.key()
		case "v":
			words[i] = []string{"1", "-7", "value", "\x00db3|v"}[g.IntN(4)]
		case "d":
			words[i] = strconv.Itoa([]int{0, 1, 1, 2, 15, g.IntN(16)}[g.IntN(6)])
		}
	}
	return call{args: words}
}

func (g *databaseSource) key() string {
	return []string{"k1", "k2", "key2", "{tag}k", "a|b", "db1|k"}[g.IntN(6)]
}

// expiring is the part of a line of INFO that weir answers otherwise, because each limiter ends some time.
var expiring = regexp.MustCompile(`,expires=[^\r]*`)

// accepted is what weir adds to an error of Redis, also to one within the reply of EXEC.
var accepted = regexp.MustCompile(`(-ERR [^\r:]*): index must be[^\r]*`)

// comparable sorts the lines of a reply in no order, and leaves out what differs.
func comparable(reply string) string {
	reply = accepted.ReplaceAllString(reply, "$1")
	switch {
	case strings.HasPrefix(reply, "*"):
		f, err := readFrame(bufio.NewReader(strings.NewReader(reply)))
		if err != nil || slices.ContainsFunc(f.elements, func(e frame) bool { return e.raw[0] != '$' }) {
			return reply
		}
		slices.SortFunc(f.elements, func(a, b frame) int { return strings.Compare(a.raw, b.raw) })
		return fmt.Sprint(f.elements)
	case strings.Contains(reply, "# Keyspace"):
		_, lines, _ := strings.Cut(reply, "\r\n")
		return expiring.ReplaceAllString(lines, "")
	}
	return reply
}

// TestGoClientsKeepToTheirDatabase uses the database in the URLs and options of clients for Go.
func TestGoClientsKeepToTheirDatabase(t *testing.T) {
	addr := startWeir(t).addr
	testDatabases(t, func(t *testing.T, database int) askDatabase {
		options, err := goredis.ParseURL(fmt.Sprintf("redis://%s/%d", addr, database))
		require.NoError(t, err)
		c := goredis.NewClient(options)
		t.Cleanup(func() { _ = c.Close() })
		return func(args ...string) (any, error) { return c.Do(context.Background(), anys(args)...).Result() }
	})
	testDatabases(t, func(t *testing.T, database int) askDatabase {
		c, err := redis.DialURL(fmt.Sprintf("redis://%s/%d", addr, database))
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		return func(args ...string) (any, error) { return c.Do(args[0], anys(args[1:])...) }
	})
	testDatabases(t, func(t *testing.T, database int) askDatabase {
		c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, SelectDB: database})
		require.NoError(t, err)
		t.Cleanup(c.Close)
		return func(args ...string) (any, error) {
			return c.Do(context.Background(), c.B().Arbitrary(args...).Build()).ToAny()
		}
	})
}

// askDatabase sends a command in one database.
type askDatabase func(args ...string) (any, error)

// testDatabases checks that the clients of database 1 and 0 share no key, and that a flush of 1 leaves 0.
func testDatabases(t *testing.T, dial func(t *testing.T, database int) askDatabase) {
	t.Helper()
	zero, one := dial(t, 0), dial(t, 1)
	ask := func(c askDatabase, args ...string) string {
		t.Helper()
		reply, err := c(args...)
		if err != nil && strings.Contains(err.Error(), "nil") {
			return "nil"
		}
		require.NoError(t, err)
		if text, ok := reply.([]byte); ok {
			reply = string(text)
		}
		return fmt.Sprint(reply)
	}
	ask(zero, "FLUSHALL")
	require.Equal(t, "OK", ask(zero, "SET", "k", "of zero"))
	require.Contains(t, []string{"nil", "<nil>"}, ask(one, "GET", "k"))
	require.Equal(t, "0", ask(one, "DBSIZE"))
	require.Equal(t, "[1 4 0 -1 5]", ask(one, "RL.FIXED", "limiter", "FOREVER", "5"))
	require.Equal(t, "[1 4 0 -1 5]", ask(zero, "RL.FIXED", "limiter", "FOREVER", "5"))
	require.Equal(t, "[1 3 0 -1 5]", ask(one, "RL.FIXED", "limiter", "FOREVER", "5"))
	require.Equal(t, "OK", ask(one, "FLUSHDB"))
	require.Equal(t, "0", ask(one, "DBSIZE"))
	require.Equal(t, "of zero", ask(zero, "GET", "k"))
	require.Equal(t, "2", ask(zero, "DBSIZE"))
	require.Equal(t, "[1 3 0 -1 5]", ask(zero, "RL.FIXED", "limiter", "FOREVER", "5"))
}

// TestDatabasesOfACluster runs the same in a cluster with one group and with four, on every node, and compares the
// states of the nodes in the end.
func TestDatabasesOfACluster(t *testing.T) {
	for _, groups := range []int{1, severalGroups} {
		t.Run(fmt.Sprint(groups), func(t *testing.T) {
			c := startCluster(t, nil, "--groups", strconv.Itoa(groups), "--debug-commands")
			c.groups = groups
			c.leaders()
			for _, w := range c.nodes {
				c, err := redis.Dial("tcp", w.addr)
				require.NoError(t, err)
				until(t, "a node does not know that all members have databases", func() bool {
					_, err = c.Do("SELECT", "1")
					return err == nil
				})
				require.NoError(t, c.Close())
			}
			for _, id := range nodeIDs {
				testDatabases(t, func(t *testing.T, database int) askDatabase {
					c, err := redis.Dial("tcp", c.nodes[id].addr, redis.DialDatabase(database))
					require.NoError(t, err)
					t.Cleanup(func() { _ = c.Close() })
					return func(args ...string) (any, error) { return doAgain(c, args) }
				})
			}
			testFlushOfManyKeys(t, c)
		})
	}
}

// doAgain sends a command until a leader has carried it out. The leaders of four groups may move to even them out.
func doAgain(conn redis.Conn, args []string) (reply any, err error) {
	for began := time.Now(); time.Since(began) < clusterWait; {
		reply, err = conn.Do(args[0], anys(args[1:])...)
		if err == nil || !strings.HasPrefix(err.Error(), "TRYAGAIN") {
			break
		}
	}
	return reply, err
}

// testFlushOfManyKeys fills three databases through all nodes, empties one, and compares what every node has.
func testFlushOfManyKeys(t *testing.T, c *cluster) {
	const keys = 500
	in := func(id string, database int, send func(redis.Conn)) {
		t.Helper()
		conn, err := redis.Dial("tcp", c.nodes[id].addr, redis.DialDatabase(database))
		require.NoError(t, err)
		send(conn)
		require.NoError(t, conn.Close())
	}
	do := func(conn redis.Conn, args ...string) string {
		t.Helper()
		reply, err := doAgain(conn, args)
		require.NoError(t, err)
		return fmt.Sprint(reply)
	}
	in("a", 0, func(conn redis.Conn) {
		do(conn, "FLUSHALL")
		do(conn, "RL.POLICY", "SET", "p", "LIMIT", "FIXED", "FOREVER", "10", "LIMIT", "TOKENBUCKET", "1/h", "20")
	})
	for database := range 3 {
		in(nodeIDs[database], database, func(conn redis.Conn) {
			for i := range keys {
				require.Equal(t, "[1 9 0 -1 10 [112]]", do(conn, "RL.CHECK", "p", fmt.Sprint("key", i)))
				do(conn, "SET", fmt.Sprint("string", i), strconv.Itoa(database))
			}
			require.Equal(t, strconv.Itoa(3*keys), do(conn, "DBSIZE"))
		})
	}
	in("b", 1, func(conn redis.Conn) { require.Equal(t, "OK", do(conn, "FLUSHDB")) })
	for _, id := range nodeIDs {
		for database, want := range []int{3 * keys, 0, 3 * keys} {
			in(id, database, func(conn redis.Conn) {
				require.Equal(t, strconv.Itoa(want), do(conn, "DBSIZE"), "database %d on %s", database, id)
				names, err := redis.Strings(conn.Do("KEYS", "*"))
				require.NoError(t, err)
				require.Len(t, names, want)
			})
		}
	}
	until(t, "the nodes differ", func() bool {
		digests := map[string]bool{}
		for _, w := range c.nodes {
			reply, err := redis.Values(w.ask("DEBUG", "DIGEST"))
			require.NoError(t, err)
			digests[fmt.Sprintf("%s", reply)] = true
		}
		return len(digests) == 1
	})
}
