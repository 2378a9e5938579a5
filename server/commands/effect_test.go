package commands

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/acl"
	"github.com/weir-project/weir/server/servertest"
)

// otherLines are lines of the commands that wrappedLines does not have, for TestOKIsTrue. Only the reply to the last line
// matters. A line after "!" is refused on a server of one node without a disk.
var otherLines = map[string][]string{
	"ping": {"PING"}, "echo": {"ECHO x"}, "quit": {"QUIT"}, "reset": {"RESET"}, "select": {"SELECT 0"},
	"multi": {"MULTI"}, "exec": {"MULTI", "EXEC"}, "discard": {"MULTI", "DISCARD"}, "unwatch": {"UNWATCH"},
	"subscribe": {"SUBSCRIBE a"}, "psubscribe": {"PSUBSCRIBE a"}, "publish": {"!PUBLISH a b"},
	"unsubscribe": {"UNSUBSCRIBE a"}, "punsubscribe": {"PUNSUBSCRIBE a"},
	"pubsub|channels": {"PUBSUB CHANNELS"}, "pubsub|numsub": {"PUBSUB NUMSUB"}, "pubsub|numpat": {"PUBSUB NUMPAT"},
	"client|id": {"CLIENT ID"}, "client|getname": {"CLIENT GETNAME"},
	"client|setname": {"CLIENT SETNAME me"}, "client|setinfo": {"CLIENT SETINFO LIB-NAME me"},
	"client|list": {"CLIENT LIST"}, "client|info": {"CLIENT INFO"}, "client|kill": {"CLIENT KILL 127.0.0.1:40001"},
	"client|reply": {"CLIENT REPLY OFF", "CLIENT REPLY ON"}, "client|pause": {"CLIENT PAUSE 1"},
	"client|unpause": {"CLIENT PAUSE 60000 WRITE", "CLIENT UNPAUSE"}, "client|no-evict": {"CLIENT NO-EVICT ON"},
	"client|no-touch": {"CLIENT NO-TOUCH ON"}, "client|capa": {"CLIENT CAPA redirect"},
	"client|tracking": {"CLIENT TRACKING ON OPTIN"}, "client|trackinginfo": {"CLIENT TRACKINGINFO"},
	"client|getredir": {"CLIENT GETREDIR"}, "client|caching": {"!CLIENT CACHING YES"},
	"script|load": {"!SCRIPT LOAD x"}, "script|exists": {"SCRIPT EXISTS x"},
	"script|flush": {"SCRIPT FLUSH"}, "script|kill": {"!SCRIPT KILL"},
	"info": {"INFO"}, "time": {"TIME"}, "save": {"SAVE"}, "bgsave": {"BGSAVE"}, "lastsave": {"LASTSAVE"},
	"flushall": {"SET k 5", "FLUSHALL"}, "flushdb": {"SET k 5", "FLUSHDB"}, "shutdown": {"!SHUTDOWN"}, "role": {"ROLE"}, "wait": {"WAIT 0 0"},
	"monitor": {"MONITOR"}, "weir.unsupported": {"WEIR.UNSUPPORTED"},
	"config|get": {"CONFIG GET x"}, "config|set": {"CONFIG SET slowlog-max-len 7"},
	"config|resetstat": {"NOSUCH", "CONFIG RESETSTAT"}, "config|rewrite": {"!CONFIG REWRITE"},
	"slowlog|get": {"SLOWLOG GET"}, "slowlog|len": {"SLOWLOG LEN"},
	"slowlog|reset":  {"CONFIG SET slowlog-log-slower-than 0", "PING", "SLOWLOG RESET"},
	"latency|latest": {"LATENCY LATEST"}, "latency|history": {"LATENCY HISTORY x"},
	"latency|histogram": {"LATENCY HISTOGRAM"}, "latency|reset": {"LATENCY RESET"}, "latency|doctor": {"LATENCY DOCTOR"},
	"command": {"COMMAND"}, "command|count": {"COMMAND COUNT"}, "command|list": {"COMMAND LIST"},
	"command|info": {"COMMAND INFO get"}, "command|docs": {"COMMAND DOCS get"}, "command|getkeys": {"COMMAND GETKEYS GET k"},
	"command|getkeysandflags": {"COMMAND GETKEYSANDFLAGS GET k"}, "acl|whoami": {"ACL WHOAMI"},
	"acl|users": {"ACL USERS"}, "acl|list": {"ACL LIST"}, "acl|getuser": {"ACL GETUSER default"}, "acl|load": {"ACL LOAD"},
	"acl|cat": {"ACL CAT"}, "acl|genpass": {"ACL GENPASS"}, "debug|clock": {"DEBUG CLOCK ADVANCE 1"},
	"debug|digest": {"!DEBUG DIGEST"}, "debug|remove": {"!DEBUG REMOVE a 0"}, "debug|sleep": {"DEBUG SLEEP 0.001"},
	"cluster|info": {"CLUSTER INFO"}, "cluster|myid": {"CLUSTER MYID"},
	"cluster|keyslot": {"CLUSTER KEYSLOT k"}, "cluster|nodes": {"!CLUSTER NODES"}, "cluster|slots": {"!CLUSTER SLOTS"},
	"cluster|shards": {"!CLUSTER SHARDS"}, "cluster|links": {"!CLUSTER LINKS"},
	"cluster|replicas":                 {"!CLUSTER REPLICAS x"},
	"sentinel|get-master-addr-by-name": {"SENTINEL GET-MASTER-ADDR-BY-NAME mymaster"},
	"sentinel|masters":                 {"SENTINEL MASTERS"}, "sentinel|master": {"SENTINEL MASTER mymaster"},
	"sentinel|replicas": {"SENTINEL REPLICAS mymaster"}, "sentinel|slaves": {"SENTINEL SLAVES mymaster"},
	"sentinel|sentinels": {"SENTINEL SENTINELS mymaster"}, "sentinel|ckquorum": {"SENTINEL CKQUORUM mymaster"},
	"sentinel|myid": {"SENTINEL MYID"},
	"readonly":      {"READONLY"}, "readwrite": {"READONLY", "READWRITE"}, "asking": {"ASKING"},
	"weir.cluster|status": {"!WEIR.CLUSTER STATUS"},
	"weir.backup|start":   {"!WEIR.BACKUP START"}, "weir.backup|next": {"!WEIR.BACKUP NEXT"},
	"memory|stats": {"MEMORY STATS"}, "memory|doctor": {"MEMORY DOCTOR"}, "weir.cluster|add": {"!WEIR.CLUSTER ADD b 192.0.2.1:1"},
	"weir.cluster|remove": {"!WEIR.CLUSTER REMOVE b"}, "weir.cluster|transfer": {"!WEIR.CLUSTER TRANSFER b"},
	"weir.cluster|move":     {"!WEIR.CLUSTER MOVE 0 a b"},
	"weir.cluster|snapshot": {"!WEIR.CLUSTER SNAPSHOT"}, "weir.backup|stop": {"WEIR.BACKUP STOP"},
	"sadd": {"SADD addresses 192.0.2.7"}, "srem": {"SREM addresses 192.0.2.7"},
}

// effectsElsewhere are commands whose OK is true although TestOKIsTrue sees no difference.
var effectsElsewhere = map[string]string{
	"select": "the database 0 is selected already", "debug|sleep": "time has passed",
	"weir.backup|stop": "no backup runs afterwards",
}

// volatile matches what every command changes in the description of its client.
var volatile = regexp.MustCompile(`(age|idle|cmd)=\S+`)

// state is what a command may change, of its session and of the server, at the end of its work in the background.
func (c *testClient) state(srv *testServer) string {
	s := c.sess
	srv.Running.Wait()
	entries, kept := srv.Slowlog.Size()
	_, errors := srv.Stats.ErrorCounts()
	info, _ := srv.lim.Inspect([]byte("k"))
	return fmt.Sprint(volatile.ReplaceAllString(s.about.Line(s.about.Since), ""), s.Closing, s.tx != nil, s.Mute,
		s.reads.Stale, entries, kept, errors, srv.SlowPath.Load(), srv.lim.LastSave(), srv.lim.Now(), info,
		fmt.Sprintf("%p", srv.Users.Load()))
}

// isError reports whether a reply, as say returns it, is an error. Negative numbers are none.
func isError(reply string) bool { return len(reply) > 1 && reply[0] == '-' && reply[1] > '9' }

// TestOKIsTrue sends every command that does more than read. If it answers OK, it must have changed something, or its
// reference must say why it does nothing.
func TestOKIsTrue(t *testing.T) {
	without := 0
	newCommandTable(families()...).each(func(cmd *command) {
		if cmd.name == "HELP" || cmd.plan == nil && cmd.run == nil {
			return
		}
		lines := append(slices.Clone(otherLines[cmd.Full]), wrappedLines[cmd.Full]...)
		if len(lines) == 0 {
			t.Errorf("%s needs lines", cmd.Full)
			return
		}
		srv := newTestServer(t, Config{EnableDebug: true, BlacklistKey: "addresses",
			LoadUsers: func() (*acl.Users, error) {
				return ParseUsers([]byte("user default on nopass ~* +@all\nuser all on nopass ~* +@all"))
			}})
		c := srv.client(t)
		var reply, before string
		for _, line := range lines {
			line, refused := strings.CutPrefix(line, "!")
			before = c.state(srv)
			reply = c.say(strings.NewReplacer("%k", "k", "%m", "m", "%n", "1").Replace(line))
			if otherLines[cmd.Full] != nil && line != "NOSUCH" {
				assert.Equal(t, refused, isError(reply), "%s answers %s", line, reply)
			}
		}
		switch changed := before != c.state(srv); {
		case reply != "OK" || effectsElsewhere[cmd.Full] != "":
		case changed:
			assert.Empty(t, cmd.noEffect, "%s does something", cmd.Full)
		default:
			assert.NotEmpty(t, cmd.noEffect, "%s answers OK, does nothing and does not say why", cmd.Full)
			without++
		}
	})
	require.NotZero(t, without)
}

// diskless is a limiter in memory only.
type diskless struct{ *servertest.TableLimiter }

func (diskless) Storage() (limiter.Storage, bool) { return limiter.Storage{}, false }

// TestNoSaveBeginsWithoutADisk checks that BGSAVE does not answer that it has begun what must fail.
func TestNoSaveBeginsWithoutADisk(t *testing.T) {
	srv, err := NewShared(silent(Config{}), diskless{servertest.NewTableLimiter()})
	require.NoError(t, err)
	c := (&testServer{Shared: srv}).client(t)
	require.Equal(t, "-ERR "+limiter.ErrNoDisk.Error(), c.say("BGSAVE"))
}
