package commands

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/engine/hashslot"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/httpapi"
	"github.com/weir-project/weir/server/servertest"
	"github.com/weir-project/weir/server/service"
)

// spreadClient is a client of node a, which has and leads the first of four groups. Every group has limiters: those of
// take0 to take3. Group 1 also has k, with limiters of a policy, a hold and events.
func spreadClient(t *testing.T, cfg Config) (*testClient, *servertest.FakeReplica) {
	f := servertest.NewFakeCluster()
	f.Split("a", "b", "c", "c")
	writer, _ := clusterClient(t, f, "a", Config{})
	for _, send := range []string{take0, take1, take2, take3, "RL.FIXED k FOREVER 9",
		"RL.POLICY SET p LIMIT FIXED FOREVER 9 NOTIFY 10% 20% LIMIT TOKENBUCKET 1/h 9 LAYOUT rate:{key}",
		"RL.CHECK p k COST 2", "RL.RESERVE p k 2 1m ID {k}h", "RL.RESERVE p k 2 1m ID {k}i"} {
		reply := writer.say(send)
		require.NotEqual(t, byte('-'), reply[0], "%s: %s", send, reply)
	}
	c, node := clusterClient(t, f, "a", cfg)
	node.MoveAway(1, 2, 3)
	return c, node
}

// awayLines are calls of a command that reads groups on other nodes.
func awayLines(cmd *command) (lines []string) {
	slot := fmt.Sprint(hashslot.Of([]byte("k")))
	in := strings.NewReplacer("events:0", "events:1", "GROUP 0", "GROUP 1", "SLOT 1", "SLOT "+slot, "%k", "k",
		"%m", "foo")
	for _, line := range append(wrappedLines[cmd.Full], readers[cmd.Full]) {
		lines = append(lines, in.Replace(line))
	}
	switch cmd.Full {
	case "rl.events":
		lines = append(lines, "RL.EVENTS AFTER 1 GROUP 1", "RL.EVENTS GROUP 1 BLOCK 1h AFTER 1",
			"RL.EVENTS GROUP 3 BLOCK 1h")
	case "xread":
		lines = append(lines, "XREAD BLOCK 0 STREAMS weir:events:1 weir:events:2 0-1 $")
	case "xrange":
		lines = append(lines, "XRANGE weir:events:1 (0-1 9", "XRANGE weir:events:1 1 + COUNT 1")
	case "ttl", "hgetall", "type", "memory|usage":
		lines = append(lines, strings.Replace(readers[cmd.Full], " k", " rate:k", 1))
	case "zcard":
		lines = append(lines, "ZCARD rate:k")
	case "scan":
		lines = append(lines, fmt.Sprint("SCAN ", uint64(1)<<engine.CursorBits))
	case "keys":
		lines = append(lines, "KEYS policy|*")
	case "rl.explain":
		lines = append(lines, "RL.EXPLAIN RL.STRIKE k2 1m 1 1m", "RL.EXPLAIN RL.CHECK p k COST 10")
	}
	return lines
}

// TestAFailedReadIsTheOneAnswer makes each read of a group on another node fail, of each command with the flag
// readonly. The command must answer the error and nothing else, alone, in a pipeline, in a transaction, over HTTP and
// under READONLY, and count one error.
func TestAFailedReadIsTheOneAnswer(t *testing.T) {
	c, node := spreadClient(t, Config{BlacklistKey: blacklistKey})
	h := newHTTP(c.sess.srv)
	// local are the commands that read what every node has.
	local := " rl.policy|get rl.policy|list sismember smismember smembers scard sscan "
	failures := 0
	each(c.sess.srv.table.all, func(cmd *command) {
		if !cmd.has("readonly") || cmd.subs != nil {
			return
		}
		asks := false
		for _, line := range awayLines(cmd) {
			if strings.Contains(line, "BLOCK") { // it would wait for an event
				node.FailReads(io.EOF, 2)
			} else {
				node.FailReads(nil, 0)
			}
			good := c.anew(line)
			asked, _ := node.RemoteReads()
			if asked == 0 || strings.HasPrefix(good, "-ERR") {
				continue
			}
			asks = true
			for before := range asked {
				for err, want := range map[error]string{limiter.ErrTryAgain: tryAgainText, io.EOF: tryAgainText,
					limiter.ErrClusterDown: "CLUSTERDOWN the cluster has no leader, nothing was counted"} {
					requireOneAnswer(t, c, h, cmd, line, want, func() { node.FailReads(err, before) })
					failures++
				}
			}
		}
		require.Equal(t, !strings.Contains(local, " "+cmd.Full+" "), asks, "%s asks other nodes", cmd.Full)
	})
	require.Greater(t, failures, 150)
}

const tryAgainText = "TRYAGAIN not applied, send it again"

func requireOneAnswer(t *testing.T, c *testClient, h *httpapi.Server, cmd *command, line, want string, fail func()) {
	t.Helper()
	pong, failed := "+PONG\r\n", "-"+want+"\r\n"
	pipeline := func(lines ...string) string {
		fail()
		c.sess.Begin()
		for _, line := range lines {
			var args [][]byte
			for _, word := range split(line) {
				args = append(args, []byte(word))
			}
			c.sess.Do(args)
		}
		c.sess.DecidePending()
		defer c.wire.Truncate(0)
		return string(c.wire.Out)
	}
	for _, mode := range []string{"READONLY", "HELLO 3", "HELLO 2", "READWRITE"} {
		c.say(mode)
		before, _ := c.sess.srv.Stats.ErrorCounts()
		require.Equal(t, pong+failed+pong, pipeline("PING", line, "PING"), "%s: %s", mode, line)
		word, _, _ := strings.Cut(want, " ")
		before[word]++
		after, _ := c.sess.srv.Stats.ErrorCounts()
		require.Equal(t, before, after, line)
		if !cmd.has("no_multi") {
			require.Equal(t, "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n"+pong+failed+pong,
				pipeline("MULTI", "PING", line, "PING", "EXEC"), "%s: %s", mode, line)
		}
	}
	if cmd.needsSession() {
		return
	}
	fail()
	words := jsonOf(t, split(line))
	w := rest(h, "/", words, nil)
	require.Equal(t, http.StatusBadRequest, w.Code, line)
	require.JSONEq(t, jsonOf(t, map[string]string{"error": want}), w.Body.String(), line)
	for _, path := range []string{"/pipeline", "/multi-exec"} {
		fail()
		require.JSONEq(t, fmt.Sprintf(`[{"result": "PONG"}, {"error": %q}, {"result": "PONG"}]`, want),
			rest(h, path, `[["PING"], `+words+`, ["PING"]]`, nil).Body.String(), "%s: %s", path, line)
	}
}

// TestAScriptDeletesNothingAfterAFailedRead checks the Lua line that deletes the keys of a pattern.
func TestAScriptDeletesNothingAfterAFailedRead(t *testing.T) {
	c, node := spreadClient(t, Config{})
	node.FailReads(limiter.ErrClusterDown, 1)
	require.Contains(t, c.say("EVAL \""+deleteAllBegin+"*"+deleteAllEnd+"\" 0"), "-CLUSTERDOWN ")
	node.FailReads(nil, 0)
	require.Equal(t, "5", c.say("EXISTS hello bar foo x k"))
}

// TestAFailedReadIsNotRepeated checks that a command on many keys asks a silent group once.
func TestAFailedReadIsNotRepeated(t *testing.T) {
	c, node := spreadClient(t, Config{})
	node.FailReads(limiter.ErrTryAgain, 1)
	require.Contains(t, c.say("EXISTS k k k k k k"), "-TRYAGAIN ")
	asked, failed := node.RemoteReads()
	require.Equal(t, []int{2, 1}, []int{asked, failed})
}

// TestThePageReadsItsOwnNode checks that metrics, INFO and the page show the groups of the node and ask no other node,
// and that a key is looked up wherever it is.
func TestThePageReadsItsOwnNode(t *testing.T) {
	c, node := spreadClient(t, Config{})
	h := newHTTP(c.sess.srv)
	node.FailReads(limiter.ErrTryAgain, 0)
	for _, path := range []string{"/status.json", "/metrics", "/readyz", "/history.json", "/"} {
		require.Equal(t, http.StatusOK, visit(h, path, nil).Code, path)
	}
	status := visit(h, "/status.json", nil).Body.String()
	require.Contains(t, status, `"key":"hello"`)
	require.NotContains(t, status, `"key":"foo"`)
	require.Contains(t, c.say("INFO"), "db0:keys=1,")
	asked, _ := node.RemoteReads()
	require.Zero(t, asked)

	w := visit(h, "/key.json?name=k", nil)
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Equal(t, tryAgainText+"\n", w.Body.String())
	require.JSONEq(t, `{"error": "`+tryAgainText+`"}`,
		order(h, nil, "RL.EXPLAIN", "RL.FIXED", "k", "FOREVER", "9").Body.String())
	node.FailReads(nil, 0)
	require.Contains(t, visit(h, "/key.json?name=k", nil).Body.String(), `"name":"policy|p|1|k"`)
	require.Equal(t, "5", c.say("EXISTS hello bar foo x k"))
}

// TestAReadAsksForItsOwnGroups checks that a scan of some groups asks for no others.
func TestAReadAsksForItsOwnGroups(t *testing.T) {
	c, node := spreadClient(t, Config{Redirect: service.RedirectMoved})
	for line, groups := range map[string]int{"KEYS *": 0, "SCAN 0": 0, "DBSIZE": 0,
		"CLUSTER COUNTKEYSINSLOT 866": 0, "CLUSTER GETKEYSINSLOT 12182 9": 1, "TTL hello": 0, "TTL bar": 1} {
		node.FailReads(nil, 0)
		require.NotEqual(t, byte('-'), c.anew(line)[0], line)
		asked, _ := node.RemoteReads()
		require.Equal(t, groups, asked, line)
	}
	require.Equal(t, "foo", c.say("CLUSTER GETKEYSINSLOT 12182 9"))
	require.Equal(t, "hello", c.say("KEYS *"))
	next := strings.Fields(c.say("SCAN 0 COUNT 99"))
	require.Equal(t, "hello", next[1])
	require.Equal(t, "0 ", c.say("SCAN "+next[0]))

	c.sess.stays = true // the node shows all keys
	var seen []string
	for cursor := "0"; cursor != "0" || seen == nil; {
		found := strings.Fields(c.say("SCAN " + cursor + " MATCH *[xo] COUNT 99"))
		cursor, seen = found[0], append(seen, found[1:]...)
	}
	require.ElementsMatch(t, []string{"hello", "foo", "x"}, seen)
	require.Len(t, strings.Fields(c.say("KEYS *")), 6)
}

// TestAWaitForEventsEndsWhenAReadFails checks that a waiting reader is answered at once, and that its error does not
// change what was sent before it waited.
func TestAWaitForEventsEndsWhenAReadFails(t *testing.T) {
	for _, line := range []string{"RL.EVENTS GROUP 1 AFTER 2 BLOCK 1h", "XREAD BLOCK 0 STREAMS weir:events:1 $",
		"RL.EVENTS GROUP 1 BLOCK 1h"} {
		synctest.Test(t, func(t *testing.T) {
			c, node := spreadClient(t, Config{})
			if !strings.Contains(line, "AFTER") { // without a place only an empty log makes a reader wait
				node.Table = engine.NewTable(engine.Options{Shards: 8})
			}
			node.FailReads(limiter.ErrTryAgain, 5)
			c.fake.await = func() { c.wire.Out = c.wire.Out[:0] } // the answers so far are sent
			c.sess.Simple("sent before")
			start := time.Now()
			require.Equal(t, "-"+tryAgainText, c.say(line))
			require.Less(t, time.Since(start), 10*eventsPoll)
			require.Zero(t, c.sess.srv.EventWaits.Count.Load())
			require.False(t, c.sess.Closing)
		})
	}
}
