package commands

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/server/acl"
	"github.com/weir-project/weir/server/scripts"
	"github.com/weir-project/weir/server/servertest"
	"github.com/weir-project/weir/server/service"
)

func hashOf(password string) string {
	sum := sha256.Sum256([]byte(password))
	return "#" + hex.EncodeToString(sum[:])
}

// usersServer returns a server that reads its users from a text, which the test may change.
func usersServer(t *testing.T, password, text string) (*testServer, *string) {
	t.Helper()
	now := &text
	return newTestServer(
		t, Config{Password: password, LoadUsers: func() (*acl.Users, error) { return ParseUsers([]byte(*now)) }}), now
}

func (c *testClient) as(user, password string) *testClient {
	c.t.Helper()
	require.Equal(c.t, "OK", c.say("AUTH "+user+" "+password))
	return c
}

var someUsers = "# who uses this server\n\n" +
	"user app on " + hashOf("pa") + " " + hashOf("pb") + " ~app:* ~shared +@decide +@connection +@transaction\n" +
	"user looker on " + hashOf("pl") + " ~* +@read -@dangerous\n" +
	"user boss on " + hashOf("ps") + " allkeys &* sanitize-payload +@all\n" +
	"user policies on " + hashOf("pp") + " +@policy\n" +
	"user gone off " + hashOf("pg") + " ~* +@all\n"

func TestLoginAsAUser(t *testing.T) {
	srv, _ := usersServer(t, "", someUsers)
	c := srv.client(t)
	assert.Equal(t, "-"+string(service.ErrNoAuth), c.say("PING"), "a server with a users file must require a login")
	for _, line := range []string{"AUTH x", "AUTH default x", "AUTH app pl", "AUTH app", "AUTH gone pg",
		"AUTH nobody pa", `AUTH nobody ""`} {
		assert.Equal(t, "-"+string(service.ErrWrongPass), c.say(line), line)
	}
	c.as("app", "pa").as("app", "pb")
	assert.Equal(t, "app", c.say("ACL WHOAMI"))
	assert.Equal(t, "-"+string(service.ErrWrongPass), c.say("AUTH boss pa"))
	assert.Equal(t, "app", c.say("ACL WHOAMI"), "a failed login must not change the user")
	assert.Contains(t, c.say("CLIENT INFO"), " user=app ")
	assert.Contains(t, srv.client(t).say("HELLO 3 AUTH boss ps"), "proto 3")
	assert.Equal(t, "RESET", c.say("RESET"))
	assert.Equal(t, "-"+string(service.ErrNoAuth), c.say("PING"))

	srv, _ = usersServer(t, "secret", someUsers)
	c = srv.client(t)
	assert.Equal(t, "OK", c.say("AUTH secret"))
	assert.Equal(t, "default", c.say("ACL WHOAMI"))

	_, err := NewShared(Config{Password: "secret", LoadUsers: func() (*acl.Users,
		error) {
		return ParseUsers([]byte("user default on nopass ~* +@all"))
	}}, servertest.NewTableLimiter())
	require.ErrorIs(t, err, acl.ErrTwoPasswords)
}

// TestWhatAUserMayDo checks that every way to decide, read or change requires permission for the command and for the
// key.
func TestWhatAUserMayDo(t *testing.T) {
	srv, _ := usersServer(t, "", someUsers)
	srv.client(t).as("boss", "ps").say("RL.POLICY SET p LIMIT TOKENBUCKET 10/s 10")
	noCommand := func(user, cmd string) string {
		return "-NOPERM User " + user + " has no permissions to run the '" + cmd + "' command"
	}
	noKey := "-" + string(service.ErrNoKey)
	for _, test := range []struct{ user, send, want string }{
		{"app pa", "RL.TOKENBUCKET app:1 10/s 10", "1 9 0 100 10"},
		{"app pa", "RL.TOKENBUCKET other:1 10/s 10", noKey},
		{"app pa", "RL.TOKENBUCKET shared 10/s 10", "1 9 0 100 10"},
		{"app pa", "RL.CHECK p app:2 p other:2", noKey},
		{"app pa", "RL.CHECK p app:3 COST 1 ID other:1", "1 9 0 100 10 p"},
		{"app pa", "RL.REFUND app:1 1", "10"},
		{"app pa", "RL.RESET app:1", noCommand("app", "rl.reset")},
		{"app pa", "RL.POLICY SET p LIMIT TOKENBUCKET 99/s 99", noCommand("app", "rl.policy|set")},
		{"app pa", "CLIENT LIST", noCommand("app", "client|list")},
		{"app pa", "FLUSHALL", noCommand("app", "flushall")},
		{"app pa", "CLIENT SETNAME me", "OK"},
		{"looker pl", "RL.INSPECT idle", ""},
		{"looker pl", "SCAN 0", noCommand("looker", "scan")},
		{"looker pl", "RL.TOKENBUCKET k 10/s 10", noCommand("looker", "rl.tokenbucket")},
		{"looker pl", "PING", noCommand("looker", "ping")},
		{"policies pp", "RL.POLICY SET q LIMIT TOKENBUCKET 1/s 1", "1"},
		{"policies pp", "RL.POLICY LIST", "p q"},
		{"boss ps", "RL.BLOCK anything FOREVER", "OK"},
		{"boss ps", "ACL USERS", "app boss default gone looker policies"},
	} {
		name, password, _ := strings.Cut(test.user, " ")
		assert.Equal(t, test.want, srv.client(t).as(name, password).say(test.send), "%s: %s", test.user, test.send)
	}
	assert.Contains(t, srv.client(t).as("boss", "ps").say("INFO stats"), "acl_access_denied_cmd:")
}

// TestKeysOfScripts checks that no script runs on a key that its user may not use.
func TestKeysOfScripts(t *testing.T) {
	srv, _ := usersServer(t, "", "user a on nopass ~app:* +@decide")
	c := srv.client(t).as("a", "x")
	send := func(sum scripts.Sum, sc *scripts.Script, key string) string {
		keys := slices.Repeat([]string{key}, sc.Keys)
		nameKeys(sc, keys, 1)
		line := slices.Concat([]string{"EVALSHA", hex.EncodeToString(sum[:]), decimal(int64(sc.Keys))}, keys,
			slices.Repeat([]string{"100"}, len(sc.Args)))
		return flat(t, c.raw(line...))
	}
	ran, refused := 0, 0
	for sum, sc := range scripts.Known.BySum {
		before := srv.lim.Calls
		if send(sum, sc, "other") == "-"+string(service.ErrNoKey) {
			refused++
		}
		require.Equal(t, before, srv.lim.Calls, sc.Name)
		send(sum, sc, "app:"+sc.Name+decimal(int64(refused)))
		ran += min(srv.lim.Calls-before, 1)
	}
	require.Greater(t, refused, 10)
	require.Equal(t, refused, ran)
	require.Equal(t, "-"+string(service.ErrNoKey), c.say("EVALSHA "+funnel+" 2 app:free other app: 60 me"))
	require.Equal(t, "app:1", c.say("EVALSHA "+funnel+" 1 app:free app: 60 me"), "the refused call took no key")
}

// nameKeys changes the keys of a call to those that the script accepts at the window with this number.
func nameKeys(sc *scripts.Script, keys []string, window int64) {
	if sc.Windows {
		keys[0], keys[1] = keys[0]+":"+decimal(window), keys[0]+":"+decimal(window-1)
	}
	if sc.Static {
		keys[len(keys)-1] = ""
	}
}

// TestPipelinesOfUsers checks that a pipeline of a limited user is decided in batches. A refusal keeps its position
// among the replies.
func TestPipelinesOfUsers(t *testing.T) {
	srv, _ := usersServer(t, "", someUsers)
	c := srv.client(t).as("app", "pa")
	calls := srv.lim.Calls
	for range 10 {
		c.sess.Do([][]byte{[]byte("RL.FIXED"), []byte("app:1"), []byte("FOREVER"), []byte("20")})
	}
	c.sess.Do([][]byte{[]byte("RL.FIXED"), []byte("other"), []byte("FOREVER"), []byte("20")})
	c.sess.Do([][]byte{[]byte("RL.FIXED"), []byte("app:1"), []byte("FOREVER"), []byte("20")})
	c.sess.DecidePending()
	replies := string(c.wire.Out)
	c.wire.Truncate(0)
	assert.Equal(t, 11, strings.Count(replies, "*5"))
	assert.Less(t, strings.Index(replies, ":10\r\n:0\r\n"), strings.Index(replies, "-NOPERM"))
	assert.True(t, strings.HasSuffix(replies, ":9\r\n:0\r\n:-1\r\n:20\r\n"), replies)
	assert.Equal(t, calls+2, srv.lim.Calls)
}

func TestReloadedUsers(t *testing.T) {
	srv, text := usersServer(t, "", someUsers)
	app, looker, boss := srv.client(t).as("app", "pa"), srv.client(t).as("looker", "pl"), srv.client(t).as("boss", "ps")
	*text = strings.Replace(someUsers, "~shared", "~other:*", 1) + "user late on nopass"
	assert.Equal(t, "OK", boss.say("ACL LOAD"))
	assert.True(t, app.fake.killed, "a changed permission must close the user's connections")
	assert.False(t, looker.fake.killed || boss.fake.killed)
	assert.Contains(t, boss.say("ACL LIST"), "user late on nopass sanitize-payload")

	*text = "user boss on #short"
	assert.Contains(t, boss.say("ACL LOAD"),
		"-ERR bad users file: line 1: user \"boss\": a password must be # and its SHA-256")
	assert.Contains(t, boss.say("ACL USERS"), "app boss", "a bad users file must not change the users")
	assert.Equal(t, "-"+string(errNoUsersFile), defaultClient(t).say("ACL LOAD"))
}

// TestSecretsStaySecret checks that no command which shows users, commands or settings shows a password or its hash.
func TestSecretsStaySecret(t *testing.T) {
	srv, _ := usersServer(t, "open-sesame", someUsers)
	watcher := srv.client(t).as("boss", "ps")
	watcher.say("CONFIG SET slowlog-log-slower-than 0")
	watcher.say("MONITOR")
	c := srv.client(t)
	c.say("AUTH default open-sesame")
	c.say("HELLO 3 AUTH boss open-sesame")
	c.say("HELLO 3 AUTH default open-sesame")
	all := watcher.fake.pushed.String()
	for _, look := range []string{"ACL LIST", "ACL GETUSER boss", "ACL GETUSER default", "SLOWLOG GET 100",
		"CONFIG GET *", "INFO everything", "CLIENT LIST"} {
		all += c.say(look)
	}
	for _, secret := range []string{"open-sesame", hashOf("open-sesame")[1:], hashOf("ps")[1:]} {
		assert.NotContains(t, all, secret)
	}
	assert.Contains(t, all, "redacted")
}

func TestBadUsersFiles(t *testing.T) {
	for text, want := range map[string]string{
		"usr a":                               "line 1: a line must be like: user app on",
		"user":                                "must be like",
		"":                                    "the file has no user; a line must be like",
		"# user a on nopass\n\n":              "the file has no user",
		"user a on\n\nuser a off":             `line 3: user "a" is defined twice`,
		"user a >secret":                      "passwords must be given as #<hash>",
		"user a #12":                          "64 hexadecimal digits",
		"user a " + hashOf("x") + "00":        "64 hexadecimal digits",
		"user a +@nope":                       "names an unknown command or category",
		"user a +lpush":                       "names an unknown command or category",
		"user a +client|nope":                 "names an unknown command or category",
		"user a @decide":                      "must be on, off, nopass",
		"user a &news":                        "must be on, off, nopass",
		"user a (~x":                          "must be on, off, nopass",
		"user a ~" + strings.Repeat("x", 600): "must be on, off, nopass",
		"user \x01":                           "no special characters",
		"user " + strings.Repeat("n", 65):     "at most 64 characters",
		"user a" + strings.Repeat(" on", 300): "at most 256 rules",
		strings.Repeat("\n", acl.MaxUsersBytes+1):   "at most 1048576 bytes",
		strings.Repeat("user a\n", 1) + "user b +@": "names an unknown command or category",
	} {
		_, err := ParseUsers([]byte(text))
		require.ErrorContains(t, err, want, "%.100s", text)
		require.NotContains(t, err.Error(), "secret")
	}
	many := new(strings.Builder)
	for i := range acl.MaxUsers + 1 {
		many.WriteString("user u" + decimal(int64(i)) + "\n")
	}
	_, err := ParseUsers([]byte(many.String()))
	require.ErrorContains(t, err, "at most 1024 users")
}

// TestRulesInOrder checks that rules apply in order, and that a container command stands for its subcommands.
func TestRulesInOrder(t *testing.T) {
	for rules, may := range map[string]map[string]bool{
		"+@all -@dangerous +config|get": {"config|get": true, "config|set": false, "rl.fixed": true, "flushall": false},
		"-@all +@decide -evalsha": {"rl.fixed": true, "evalsha": false, "eval": true, "rl.release": true,
			"rl.forgive": true, "rl.reset": false},
		"+client": {"client|kill": true, "client|id": true, "ping": false},
		"+@connection": {"client|kill": false, "client|id": true, "cluster|slots": true, "command": true,
			"info": true, "weir.cluster|add": false, "acl|whoami": true, "acl|list": false, "debug": false},
		"allcommands nocommands": {"ping": false, "auth": true, "hello": true},
		"+@read": {"rl.policy|get": true, "rl.policy|set": false, "memory|stats": true, "keys": true,
			"rl.inspect": true},
	} {
		users, err := ParseUsers([]byte("user a on " + rules))
		require.NoError(t, err)
		table := newCommandTable(families()...)
		for name, want := range may {
			require.Equal(t, want, table.named([]byte(name)).allowedTo(users.ByName["a"]), "%s: %s", rules, name)
		}
	}
}

// TestApplicationsGetNothingAdministrative checks that the rules recommended for applications permit no
// administrative command, and none whose work grows with the keys or clients of others, whatever the categories
// contain.
func TestApplicationsGetNothingAdministrative(t *testing.T) {
	for _, rules := range []string{forEveryClient, forEveryClient + " +@read -@dangerous"} {
		users, err := ParseUsers([]byte("user app on " + rules))
		require.NoError(t, err)
		newCommandTable(families()...).each(func(cmd *command) {
			cats := strings.Join(cmd.categories, " ")
			if cmd.inherits("admin") || strings.Contains(cats, "@admin") || strings.Contains(cats, "@dangerous") ||
				cmd.bulky && !cmd.keyed || strings.Contains(cmd.cost, "keys of the server") {
				assert.False(t, cmd.allowedTo(users.ByName["app"]), cmd.Full)
			}
		})
	}
}

func FuzzUsers(f *testing.F) {
	f.Add([]byte(someUsers))
	table := newCommandTable(families()...)
	f.Fuzz(func(t *testing.T, text []byte) {
		users, err := acl.Parse(table, text)
		if err != nil {
			return
		}
		for _, u := range users.List() {
			require.Len(t, u.Commands, len(table.bySlot))
			u.MayUse([]byte("key"))
		}
	})
}

// TestLoginsWait checks that a delayed login is still tried, and that it waits no longer than the server runs.
func TestLoginsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newTestServer(t, Config{Password: "secret"})
		c := srv.client(t)
		for range acl.FreeFailures + 20 {
			c.say("AUTH wrong")
		}
		began := time.Now()
		require.Equal(t, "OK", c.say("AUTH secret"))
		require.Equal(t, acl.LoginPauseMax, time.Since(began))
		require.Equal(t, "PONG", c.say("PING"))

		close(srv.Stop)
		began = time.Now()
		require.Equal(t, "OK", c.say("AUTH secret"))
		require.Zero(t, time.Since(began))
	})
}
