package commands

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/servertest"
)

func TestInfo(t *testing.T) {
	srv := newTestServer(t, Config{Addr: "127.0.0.1:7000"})
	c := srv.client(t)
	c.say("RL.FIXED k FOREVER 1")
	c.say("RL.FIXED k FOREVER 1")
	c.say("RL.FIXED k FOREVER")
	c.say("RL.SLIDING k 1m 1")
	c.say("CLIENT SETNAME x")
	all := c.say("INFO all")
	for _, want := range []string{
		"# Server\r\nredis_version:7.4.0\r\nweir_version:0.1.0-test\r\nredis_mode:standalone\r\n", "tcp_port:7000\r\n",
		"run_id:", "process_id:", "uptime_in_seconds:", "os:linux",
		"# Clients\r\nconnected_clients:1\r\n", "blocked_clients:0\r\n", "used_memory:", "maxmemory:0\r\n",
		"loading:0\r\n", "rdb_last_bgsave_status:ok\r\n",
		"total_connections_received:0\r\n", "total_commands_processed:4\r\n", "total_net_input_bytes:0\r\n",
		"rejected_connections:0\r\n", "evicted_clients:0\r\n", "expired_keys:0\r\n", "evicted_keys:0\r\n",
		"keyspace_hits:0\r\n", "role:master\r\n", "connected_slaves:0\r\n", "master_repl_offset:0\r\n",
		"master_replid:", "used_cpu_user:",
		"cmdstat_rl.fixed:calls=2,usec=", ",rejected_calls=1,failed_calls=0\r\n", "cmdstat_rl.sliding:calls=1,usec=",
		"rejected_calls=0,failed_calls=1\r\n",
		"cmdstat_client|setname:calls=1,", "errorstat_ERR:count=1\r\n", "errorstat_WRONGTYPE:count=1\r\n",
		"cluster_enabled:0\r\n",
		"db0:keys=1,expires=1,avg_ttl=0\r\n",
		"# Weir\r\nweir_version:0.1.0-test\r\ndecisions_allowed:1\r\ndecisions_denied:1\r\nkeys_tokenbucket:0\r\n",
		"keys_fixed:1\r\n",
	} {
		assert.Contains(t, all, want)
	}
	assert.Equal(t, strings.Count(all, "# "), strings.Count(c.say("INFO everything"), "# "))
	assert.NotContains(t, c.say("INFO"), "# Commandstats")
	assert.Contains(t, c.say("INFO"), "# Keyspace")
	two := c.say("info REPLICATION server")
	assert.True(t, strings.HasPrefix(two, "# Server"))
	assert.Equal(t, 2, strings.Count(two, "# "))
	assert.Equal(t, "", c.say("INFO nothing"))

	assert.Equal(t, "OK", c.say("CONFIG RESETSTAT"))
	assert.NotContains(t, c.say("INFO all"), "cmdstat_rl.fixed")
	assert.Contains(t, c.say("INFO stats"), "total_error_replies:0\r\n")
}

func TestConfig(t *testing.T) {
	srv := newTestServer(t, Config{Password: "hidden", MaxClients: 77})
	c := srv.client(t)
	c.say("AUTH hidden")
	for _, test := range []struct{ send, want string }{
		{"CONFIG GET save", "save "}, {"CONFIG GET appendonly", "appendonly no"},
		{"CONFIG GET MAXCLIENTS", "maxclients 77"},
		{"CONFIG GET databases timeout replica-read-only", "databases 16 replica-read-only no timeout 0"},
		{"CONFIG GET slowlog-*", "slowlog-log-slower-than 10000 slowlog-max-len 128"},
		{"CONFIG GET requirepass", ""}, {"CONFIG GET port bind", "bind 127.0.0.1 port 6380"},
		{"CONFIG SET slowlog-log-slower-than 5 SLOWLOG-MAX-LEN 3", "OK"},
		{"CONFIG GET slowlog-*", "slowlog-log-slower-than 5 slowlog-max-len 3"},
		{"CONFIG SET slowlog-max-len x", "-ERR slowlog-max-len must be a whole number from 0 to 10000, not 'x'"},
		{"CONFIG SET slowlog-log-slower-than -2",
			"-ERR slowlog-log-slower-than must be a whole number from -1 to 3600000000, not '-2'"},
		{"CONFIG SET nonsense 1",
			"-ERR Unknown option or number of arguments for CONFIG SET - 'nonsense': parameter must be one of " +
				"CONFIG GET *"},
		{"CONFIG SET slowlog-max-len 9 maxclients 9",
			"-ERR CONFIG SET failed (possibly related to argument 'maxclients') - can't set immutable config; " +
				"start weir with --max-clients instead (docs/configuration.md)"},
		{"CONFIG SET maxmemory 1gb",
			"-ERR CONFIG SET failed (possibly related to argument 'maxmemory') - can't set immutable config; " +
				"start weir with --max-memory instead (docs/configuration.md)"},
		{"CONFIG SET slowlog-max-len 9 slowlog-log-slower-than x",
			"-ERR slowlog-log-slower-than must be a whole number from -1 to 3600000000, not 'x'"},
		{"CONFIG GET slowlog-*", "slowlog-log-slower-than 5 slowlog-max-len 3"},
		{"CONFIG SET a", "-ERR wrong number of arguments for 'config|set' command: CONFIG SET name value " +
			"[name value ...]"},
		{"CONFIG SET slowlog-max-len 1 x",
			"-ERR wrong number of arguments for 'config|set' command: CONFIG SET name value [name value ...]"},
	} {
		assert.Equal(t, test.want, c.say(test.send), test.send)
	}
	assert.NotContains(t, c.say("CONFIG GET *"), "hidden")
	assert.Equal(t, "user default on sanitize-payload ~* &* +@all", c.say("ACL LIST"))
}

// TestConfigShowsWhatHappensWhenFull checks that CONFIG GET says whether a full memory denies new keys.
func TestConfigShowsWhatHappensWhenFull(t *testing.T) {
	for deny, want := range map[bool]string{false: "volatile-ttl", true: "noeviction"} {
		c := newTestServer(t, Config{DenyWhenFull: deny}).client(t)
		assert.Equal(t, "maxmemory-policy "+want, c.say("CONFIG GET maxmemory-policy"))
	}
}

func TestSlowlog(t *testing.T) {
	c := newTestServer(t, Config{}).client(t)
	assert.Equal(t, "0", c.say("SLOWLOG LEN"))
	c.say("CONFIG SET slowlog-log-slower-than 0")
	c.say("SLOWLOG RESET")
	c.say("AUTH default sesame")
	c.say("ECHO " + strings.Repeat("x", 200))
	for range 3 {
		c.sess.Do(words("RL.FIXED door FOREVER 9"))
	}
	c.sess.DecidePending()
	c.wire.Truncate(0)
	c.raw(split("RL.RESET" + strings.Repeat(" k", 40))...)
	c.say("CONFIG SET slowlog-log-slower-than -1")
	entries := c.value("SLOWLOG GET -1").items
	var args []string
	for i := len(entries) - 1; i >= 0; i-- {
		args = append(args, entries[i].items[3].flat())
	}
	require.Len(t, args, 5)
	assert.Equal(t, []string{"SLOWLOG RESET", "AUTH (redacted)", "ECHO " + strings.Repeat("x", 128) +
		"... (72 more bytes)",
		"RL.FIXED door ... (2 more commands of the pipeline)", "RL.RESET k"}, args)
	assert.Equal(t, "127.0.0.1:40001", entries[0].items[4].text)
	assert.Equal(t, "5", c.say("SLOWLOG LEN"))
	assert.Len(t, c.value("SLOWLOG GET").items, 5)
	assert.Len(t, c.value("SLOWLOG GET 2").items, 2)
	assert.Equal(t, "-ERR count should be greater than or equal to -1", c.say("SLOWLOG GET -2"))
	c.say("CONFIG SET slowlog-max-len 2")
	assert.Equal(t, "2", c.say("SLOWLOG LEN"))
	assert.Equal(t, "OK", c.say("SLOWLOG RESET"))
	assert.Equal(t, "0", c.say("SLOWLOG LEN"))
}

func TestSaving(t *testing.T) {
	srv := newTestServer(t, Config{})
	c := srv.client(t)
	assert.Equal(t, "OK", c.say("SAVE"))
	assert.Equal(t, "1800000000", c.say("LASTSAVE"))
	assert.Equal(t, "Background saving started", c.say("BGSAVE SCHEDULE"))
	srv.Running.Wait()
	assert.Contains(t, c.say("INFO persistence"),
		"rdb_bgsave_in_progress:0\r\nrdb_last_save_time:1800000000\r\nrdb_last_bgsave_status:ok\r\n")

	srv.lim.SaveErr = errors.New("disk on fire")
	assert.Equal(t, "-UNKNOWN disk on fire", c.say("SAVE"))
	assert.Equal(t, "Background saving started", c.say("BGSAVE"))
	srv.Running.Wait()
	assert.Contains(t, c.say("INFO persistence"), "rdb_last_bgsave_status:err\r\n")
	srv.lim.SaveErr = limiter.ErrNoDisk
	assert.Equal(t, "-ERR this server keeps its state in memory only, because it was started without a data directory",
		c.say("SAVE"))
	assert.Equal(t, "-ERR syntax error: BGSAVE [SCHEDULE]", c.say("BGSAVE NOW"))

	srv.lim.Mu.Lock() // Save now waits
	assert.Equal(t, "Background saving started", c.say("BGSAVE"))
	assert.Equal(t, "-"+string(errSaving), c.say("BGSAVE"))
	assert.Equal(t, "-"+string(errSaving), c.say("SAVE"))
	srv.lim.Mu.Unlock()
	srv.Running.Wait()
}

func TestShutdown(t *testing.T) {
	called := make(chan struct{})
	c := newTestServer(t, Config{OnShutdown: func() { close(called) }}).client(t)
	assert.Empty(t, c.raw("SHUTDOWN", "nosave"))
	assert.True(t, c.sess.Closing)
	<-called
}

func TestDebug(t *testing.T) {
	c := newTestServer(t, Config{}).client(t)
	assert.Equal(t, "-"+string(errNoDebug), c.say("DEBUG CLOCK GET"))
	assert.Equal(t, "-"+string(errNoDebug), c.say("DEBUG SLEEP 1"))

	c = defaultClient(t)
	assert.Equal(t, "1000000000", c.say("DEBUG CLOCK GET"))
	c.say("RL.TOKENBUCKET k 1/s 10 COST 10")
	assert.Equal(t, "OK", c.say("debug clock advance 2500"))
	assert.Equal(t, "0 2 500 7500 10", c.say("RL.TOKENBUCKET k 1/s 10 COST 3"))
	assert.Equal(t, "OK", c.say("DEBUG CLOCK SET 1000003000"))
	assert.Equal(t, "1 0 0 10000 10", c.say("RL.TOKENBUCKET k 1/s 10 COST 3"))
	assert.Equal(t, "OK", c.say("DEBUG SLEEP 0.000000001"))
	c.sess.srv.Limiter.Backend().(*servertest.TableLimiter).Real = true
	assert.Equal(t, "-"+string(errRealClock), c.say("DEBUG CLOCK ADVANCE 1"))
}

func TestPauseHoldsCommandsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newTestServer(t, Config{})
		a, b := srv.client(t), srv.client(t)
		assert.Equal(t, "-ERR timeout must be a whole number from 0 to 3600000, not 'x'", a.say("CLIENT PAUSE x"))
		assert.Equal(t, "-ERR syntax error: CLIENT PAUSE ms [WRITE|ALL]", a.say("CLIENT PAUSE 1 SOME"))
		assert.Equal(t, "OK", a.say("CLIENT PAUSE 5000 WRITE"))
		start := time.Now()
		b.say("TTL k")
		b.say("PING")
		assert.Zero(t, time.Since(start), "a paused client must still read")
		b.say("RL.FIXED k FOREVER 5")
		assert.Equal(t, 5*time.Second, time.Since(start))
		assert.Zero(t, srv.SlowPath.Load(), "the pause must end for every client")

		a.say("CLIENT PAUSE 3600000")
		done := make(chan string)
		go func() { done <- b.say("TTL k") }()
		time.Sleep(time.Second)
		assert.Equal(t, "OK", a.say("CLIENT UNPAUSE"))
		assert.Equal(t, "-1", <-done)

		assert.Equal(t, "OK", a.say("CLIENT PAUSE 3600000 ALL"))
		go func() { done <- b.say("TTL k") }()
		synctest.Wait()
		close(srv.Stop)
		assert.Equal(t, "-1", <-done, "a server that stops must end every pause")
	})
}
