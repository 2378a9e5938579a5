package commands

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/weir-project/weir/server/service"
)

func TestHello(t *testing.T) {
	c := defaultClient(t)
	assert.Equal(t, "*14\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n7.4.0\r\n$5\r\nproto\r\n:2\r\n$2\r\nid\r\n:1\r\n"+
		"$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n", c.raw("HELLO"))
	assert.True(t, strings.HasPrefix(c.raw("hello", "3"), "%7\r\n"))
	assert.Contains(t, c.say("CLIENT INFO"), "resp=3")
	assert.Equal(t, "server redis version 7.4.0 proto 2 id 1 mode standalone role master modules ",
		c.say("HELLO 2 SETNAME me"))
	assert.Equal(t, "me", c.say("CLIENT GETNAME"))
	for send, want := range map[string]string{
		"HELLO 4":     "-NOPROTO unsupported protocol version: protover must be 2 or 3",
		"HELLO 1":     "-NOPROTO unsupported protocol version: protover must be 2 or 3",
		"HELLO three": "-ERR Protocol version is not an integer or out of range: protover must be 2 or 3",
		"HELLO 3 AUTH default": "-ERR Syntax error in HELLO option 'AUTH': option must be AUTH username " +
			"password or SETNAME name",
		"HELLO 3 WHAT": "-ERR Syntax error in HELLO option 'WHAT': option must be AUTH username " +
			"password or SETNAME name",
		`HELLO 3 SETNAME "a b"`:     "-ERR Client names cannot contain spaces, newlines or special characters.",
		"HELLO 3 AUTH other secret": "-WRONGPASS invalid username-password pair or user is disabled.",
	} {
		assert.Equal(t, want, c.say(send), send)
	}
	assert.Contains(t, c.say("CLIENT INFO"), "resp=2", "a HELLO that fails must not change anything")
	assert.Contains(t, c.say("HELLO 3 SETNAME you AUTH default anything"), "proto 3")
}

func TestAuthentication(t *testing.T) {
	srv := newTestServer(t, Config{Password: "secret"})
	c := srv.client(t)
	for _, line := range []string{"PING", "RL.TOKENBUCKET k 10/s 10", "GET a", "CLIENT ID", "COMMAND", "EXEC",
		"SUBSCRIBE x", "CLIENT NOPE", "INFO"} {
		assert.Equal(t, "-"+string(service.ErrNoAuth), c.say(line), line)
	}
	assert.Equal(t, "-"+string(errHelloNoAuth), c.say("HELLO 3"))
	assert.Nil(t, c.sess.user)
	for _, line := range []string{"AUTH wrong", "AUTH default wrong", "AUTH other secret", "AUTH secre", "AUTH secrets",
		`AUTH ""`, "HELLO 3 AUTH default wrong"} {
		assert.Equal(t, "-"+string(service.ErrWrongPass), c.say(line), line)
		assert.Nil(t, c.sess.user)
	}
	assert.Equal(t, "OK", c.say("auth default secret"))
	assert.Equal(t, "PONG", c.say("PING"))
	assert.Equal(t, "RESET", c.say("RESET"))
	assert.Equal(t, "-"+string(service.ErrNoAuth), c.say("PING"), "RESET must log the client out")
	assert.Equal(t, "OK", c.say("AUTH secret"))
	assert.Equal(t, "1 9 0 100 10", c.say("RL.TOKENBUCKET k 10/s 10"))
	assert.Equal(t, "-ERR syntax error: AUTH [user] password", c.say("AUTH a b c"))
	assert.Contains(t, c.say("INFO stats"), "acl_access_denied_auth:7\r\n")

	c = srv.client(t)
	assert.Contains(t, c.say("HELLO 3 AUTH default secret SETNAME x"), "proto 3")
	assert.NotNil(t, c.sess.user)

	c = srv.client(t)
	assert.Equal(t, "OK", c.say("QUIT"))
	assert.True(t, c.sess.Closing)

	open := defaultClient(t)
	assert.Equal(t, "-"+string(errNoPassword), open.say("AUTH x"))
	assert.Equal(t, "OK", open.say("AUTH default x"))
}

func TestSmallTalk(t *testing.T) {
	c := defaultClient(t)
	for _, test := range []struct{ send, want string }{
		{"PING", "PONG"}, {"ping hello", "hello"},
		{"PING a b", "-ERR wrong number of arguments for 'ping' command: PING [message]"},
		{"ECHO 16-bytes-exactly", "16-bytes-exactly"}, {"SELECT 0", "OK"},
		{"READONLY", "OK"}, {"READWRITE", "OK"}, {"ASKING", "OK"}, {"WAIT 0 100", "0"}, {"ROLE", "master 0 "},
		{"TIME", "1795262400 0"}, {"LASTSAVE", "0"},
		{"LATENCY LATEST", ""}, {"LATENCY HISTORY command", ""}, {"LATENCY RESET", "0"}, {"LATENCY HISTOGRAM", ""},
		{"ACL WHOAMI", "default"}, {"ACL USERS", "default"},
		{"ACL LIST", "user default on nopass sanitize-payload ~* &* +@all"},
		{"ACL CAT nope", "-ERR Unknown category 'nope': category must be one of ACL CAT"},
		{"ACL GETUSER nobody", "nil"},
		{"ACL GETUSER default",
			"flags on nopass sanitize-payload passwords  commands +@all keys ~* channels &* selectors "},
		{"CLUSTER SLOTS", "-ERR This instance has cluster support disabled"},
		{"CLUSTER NODES", "-ERR This instance has cluster support disabled"},
		{"CLUSTER SHARDS", "-ERR This instance has cluster support disabled"},
		{"CLUSTER COUNTKEYSINSLOT 1", "-ERR This instance has cluster support disabled"},
		{"CLUSTER LINKS", "-ERR This instance has cluster support disabled"},
		{"CLUSTER KEYSLOT 123456789", "12739"}, {"CLUSTER KEYSLOT {user1000}.following", "3443"},
		{"CLUSTER KEYSLOT foo{}{bar}", "8363"},
		{"UNWATCH", "OK"}, {"WATCH k", "-" + string(errWatch)}, {"PUBLISH a b", "-" + string(errPublish)},
		{"CONFIG REWRITE", "-" + string(errNoConfigFile)}, {"SHUTDOWN", "-" + string(errNoShutdown)},
		{"SHUTDOWN ABORT", "-" + string(errNotStopping)},
		{"SHUTDOWN LATER", "-ERR syntax error: SHUTDOWN [NOSAVE|SAVE] [NOW] [FORCE] [ABORT]"},
	} {
		assert.Equal(t, test.want, c.say(test.send), test.send)
	}
	assert.Len(t, c.say("CLUSTER MYID"), 40)
	assert.Contains(t, c.say("CLUSTER INFO"), "cluster_enabled:0\r\ncluster_state:ok\r\n")
	assert.Contains(t, c.say("ACL CAT"), "ratelimit")
	assert.Contains(t, c.say("ACL CAT ratelimit"), "rl.tokenbucket")
	assert.Contains(t, c.say("CLIENT HELP"), "SETNAME name")
}

// TestShortCommandsStayOnThePoller checks that short commands stay on the poller of their connection, and that long
// ones leave it.
func TestShortCommandsStayOnThePoller(t *testing.T) {
	for line, slow := range map[string]int{"PING": 0, "PING hello": 0, "ECHO hello": 0, "DBSIZE": 1,
		"FLUSHALL": 1, "NOSUCH": 1} {
		c := defaultClient(t)
		c.say(line)
		assert.Equal(t, slow, c.fake.slow, line)
	}
}

func TestResp3Types(t *testing.T) {
	c := defaultClient(t)
	c.say("HELLO 3")
	for _, test := range []struct{ send, want string }{
		{"RANDOMKEY", "_\r\n"},
		{"CLIENT GETNAME", "_\r\n"},
		{"RL.INSPECT idle", "%0\r\n"},
		{"LATENCY HISTOGRAM", "%0\r\n"},
		{"CONFIG GET save", "%1\r\n$4\r\nsave\r\n$0\r\n\r\n"},
		{"SUBSCRIBE x", ">3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n"},
		{"UNSUBSCRIBE x", ">3\r\n$11\r\nunsubscribe\r\n$1\r\nx\r\n:0\r\n"},
		{"COMMAND INFO nope", "*1\r\n_\r\n"},
		{"CLIENT TRACKINGINFO",
			"%3\r\n$5\r\nflags\r\n~1\r\n$3\r\noff\r\n$8\r\nredirect\r\n:-1\r\n$8\r\nprefixes\r\n*0\r\n"},
		{"RL.FIXED k 1m 5", "*5\r\n:1\r\n:4\r\n:0\r\n:60000\r\n:5\r\n"},
	} {
		assert.Equal(t, test.want, c.raw(split(test.send)...), test.send)
	}
	assert.True(t, strings.HasPrefix(c.raw("INFO", "cluster"), "=34\r\ntxt:# Cluster\r\n"))
	c.say("HELLO 2")
	assert.Equal(t, "$-1\r\n", c.raw("CLIENT", "GETNAME"))
	assert.Equal(t, "*1\r\n*-1\r\n", c.raw("COMMAND", "INFO", "nope"))
}

func TestClientCommands(t *testing.T) {
	srv := newTestServer(t, Config{})
	a, b := srv.client(t), srv.client(t)
	assert.Equal(t, "1", a.say("CLIENT ID"))
	assert.Equal(t, "OK", a.say("CLIENT SETNAME worker"))
	assert.Equal(t, "-ERR Client names cannot contain spaces, newlines or special characters.",
		a.say(`CLIENT SETNAME "a b"`))
	assert.Equal(t, "OK", a.say("CLIENT SETINFO LIB-NAME go-redis(,go1.26)"))
	assert.Equal(t, "OK", a.say("client setinfo lib-ver 9.23.0"))
	assert.Equal(t, "-ERR Unrecognized option 'lib-x': attribute must be LIB-NAME or LIB-VER",
		a.say("CLIENT SETINFO lib-x y"))
	assert.Equal(t, "-ERR lib-ver cannot contain spaces, newlines or special characters.",
		a.say(`CLIENT SETINFO lib-ver "y z"`))
	for _, line := range []string{"CLIENT TRACKING ON OPTIN", "CLIENT CAPA redirect", "CLIENT NO-EVICT ON",
		"CLIENT NO-TOUCH ON", "CLIENT REPLY ON", "CLIENT UNPAUSE"} {
		assert.Equal(t, "OK", a.say(line), line)
	}
	assert.Equal(t, "-"+string(errCaching), a.say("CLIENT CACHING YES"))
	assert.Equal(t, "-1", a.say("CLIENT GETREDIR"))

	list := b.say("CLIENT LIST")
	assert.Equal(t, 2, strings.Count(list, "\n"))
	assert.Contains(t, list, "id=1 addr=127.0.0.1:40001 laddr=127.0.0.1:6380 fd=-1 name=worker")
	assert.Contains(t, list,
		"cmd=client|getredir user=default redir=-1 resp=2 lib-name=go-redis(,go1.26) lib-ver=9.23.0\n")
	assert.Equal(t, 1, strings.Count(b.say("CLIENT LIST ID 1 7"), "\n"))
	assert.Equal(t, 2, strings.Count(b.say("CLIENT LIST TYPE normal"), "\n"))
	assert.Equal(t, "-ERR Unknown client type 'odd': type must be normal, master, replica, slave or pubsub",
		b.say("CLIENT LIST TYPE odd"))
	assert.Equal(t, "-ERR Invalid client ID: id must be a whole number from 1, not 'x'", b.say("CLIENT LIST ID x"))
	assert.Equal(t, "-ERR syntax error: CLIENT LIST [TYPE type] [ID id ...]", b.say("CLIENT LIST SOME"))

	a.sess.Close()
	assert.Equal(t, 1, strings.Count(b.say("CLIENT LIST"), "\n"))
}

func TestClientKill(t *testing.T) {
	srv := newTestServer(t, Config{})
	a, b := srv.client(t), srv.client(t)
	for send, want := range map[string]string{
		"CLIENT KILL 1.2.3.4:5": "-ERR No such client",
		"CLIENT KILL ID 99":     "0",
		"CLIENT KILL ID x":      "-ERR client-id should be greater than 0: ID must be a whole number, not 'x'",
		"CLIENT KILL TYPE odd": "-ERR Unknown client type 'odd': type must be normal, master, replica, " +
			"slave or pubsub",
		"CLIENT KILL TYPE odd x": "-ERR syntax error: CLIENT KILL [address] [ID id] [TYPE type] [USER user] " +
			"[ADDR address] [LADDR address] [SKIPME YES|NO] [MAXAGE seconds]",
		"CLIENT KILL USER nobody": "-ERR No such user 'nobody': username must be one of ACL LIST",
		"CLIENT KILL SKIPME maybe": "-ERR syntax error: CLIENT KILL [address] [ID id] [TYPE type] [USER user] " +
			"[ADDR address] [LADDR address] [SKIPME YES|NO] [MAXAGE seconds]",
		"CLIENT KILL MAXAGE 1000":      "0",
		"CLIENT KILL TYPE pubsub":      "0",
		"CLIENT KILL LADDR 1.1.1.1:1":  "0",
		"CLIENT KILL ID 1 TYPE normal": "1",
	} {
		assert.Equal(t, want, b.say(send), send)
	}
	assert.True(t, a.fake.killed)
	assert.Equal(t, "0", b.say("CLIENT KILL ID 2"), "without SKIPME NO the client must not end its own connection")
	assert.False(t, b.sess.Closing)
	assert.Equal(t, "1", b.say("CLIENT KILL ID 2 SKIPME no USER default"))
	assert.True(t, b.sess.Closing, "the client's own connection must close after the reply")
	assert.False(t, b.fake.killed)
	assert.Equal(t, "OK", b.say("CLIENT KILL 127.0.0.1:40001"))
}

func TestClientReply(t *testing.T) {
	c := defaultClient(t)
	assert.Empty(t, c.raw("CLIENT", "REPLY", "SKIP"))
	assert.Empty(t, c.raw("PING"))
	assert.Equal(t, "PONG", c.say("PING"))
	assert.Empty(t, c.raw("CLIENT", "REPLY", "SKIP"))
	assert.Empty(t, c.raw("RL.FIXED", "k", "FOREVER", "5"))
	assert.Equal(t, "1 3 0 -1 5", c.say("RL.FIXED k FOREVER 5"))

	assert.Empty(t, c.raw("CLIENT", "REPLY", "OFF"))
	assert.Empty(t, c.raw("PING"))
	assert.Empty(t, c.raw("CLIENT", "REPLY", "SKIP"))
	assert.Empty(t, c.raw("RL.FIXED", "k", "FOREVER", "5"))
	assert.Empty(t, c.raw("NOPE"))
	assert.Equal(t, "OK", c.say("CLIENT REPLY ON"))
	assert.Equal(t, "1 1 0 -1 5", c.say("RL.FIXED k FOREVER 5"), "a command without a reply must still count")
	assert.Equal(t, "-ERR syntax error: CLIENT REPLY ON|OFF|SKIP", c.say("CLIENT REPLY MAYBE"))

	c.sess.Do(words("RL.FIXED k FOREVER 5"))
	c.sess.Do(words("CLIENT REPLY SKIP"))
	c.sess.Do(words("PING"))
	c.sess.Do(words("RL.FIXED k FOREVER 5 COST 0"))
	c.sess.DecidePending()
	assert.Equal(t, "1 0 0 -1 5; 1 0 0 -1 5", flat(t, string(c.wire.Out)), "earlier replies must be kept")
}

func TestReset(t *testing.T) {
	c := defaultClient(t)
	c.say("HELLO 3 SETNAME me")
	c.say("SUBSCRIBE a")
	c.say("MONITOR")
	c.say("MULTI")
	assert.Equal(t, "RESET", c.say("RESET"))
	assert.Contains(t, c.say("CLIENT INFO"), "name= ")
	assert.Contains(t, c.say("CLIENT INFO"), "flags=N db=0 sub=0 psub=0 ssub=0 multi=-1")
	assert.Zero(t, c.sess.srv.SlowPath.Load())
	assert.Zero(t, c.sess.srv.Events.Listeners.Load())
	assert.Equal(t, "-ERR EXEC without MULTI", c.say("EXEC"))
}
