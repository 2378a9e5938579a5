package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/cli/doctor"
	"github.com/weir-project/weir/server/service"
)

// lua stands for a script that weir does not recognise.
const lua = "local n = redis.call('INCR', KEYS[1]) return {n, cjson.encode(ARGV)}"

// refusedInputs are what programs send and weir refuses, in the form in which they send it. Words are separated by
// spaces, and lines by semicolons; %s is a script that weir does not recognise.
var refusedInputs = []struct{ program, sends, kind, command string }{
	{"ratelimiter 3 (tj)", "MULTI; ZREMRANGEBYSCORE limit:1 0 1", service.LacksCommand, "zremrangebyscore"},
	{"sliding window with ZADD", "ZADD limit:1 1 a", service.LacksCommand, "zadd"},
	{"sliding window with ZCOUNT", "ZCOUNT limit:1 0 1", service.LacksCommand, "zcount"},
	{"sliding window with ZRANGE", "ZRANGE limit:1 0 0 WITHSCORES", service.LacksCommand, "zrange"},
	{"bucket in a hash", "HMSET bucket:1 tokens 9 ts 1", service.LacksCommand, "hmset"},
	{"bucket with WATCH", "WATCH bucket:1", service.RefusesCommand, "watch"},
	{"quota in a hash", "HINCRBY quota user:1 1", service.LacksCommand, "hincrby"},
	{"session in a hash", "HSET session:1 user 1", service.LacksCommand, "hset"},
	{"Laravel list window", "LPUSH window:1 1; LTRIM window:1 0 9", service.LacksCommand, "lpush"},
	{"redis-semaphore", "BLPOP semaphore:1 1", service.LacksCommand, "blpop"},
	{"redis-semaphore with RENAMENX", "RENAMENX semaphore:1 semaphore:2", service.LacksCommand, "renamenx"},
	{"celery", "BRPOP celery 1", service.LacksCommand, "brpop"},
	{"sidekiq", "BRPOPLPUSH queue:a queue:b 1", service.LacksCommand, "brpoplpush"},
	{"stream consumer", "XREADGROUP GROUP g c STREAMS s >", service.LacksCommand, "xreadgroup"},
	{"stream producer", "XADD jobs * k v", service.LacksCommand, "xadd"},
	{"stream reader", "XREAD STREAMS jobs 0", service.RefusesCommand, "xread"},
	{"BITFIELD counter", "BITFIELD c:1 OVERFLOW SAT INCRBY u32 0 1", service.LacksCommand, "bitfield"},
	{"daily actives", "SETBIT day 7 1", service.LacksCommand, "setbit"},
	{"unique visitors", "PFADD day user:1", service.LacksCommand, "pfadd"},
	{"Django cache.set_many", "MSET a 1 b 2", service.LacksCommand, "mset"},
	{"cost in cents", "INCRBYFLOAT cost:1 0.25", service.LacksCommand, "incrbyfloat"},
	{"INCREX with decimals", "INCREX cost:1 BYFLOAT 0.25", service.LacksOption, "increx"},
	{"Rails cache touch", "TOUCH k", service.LacksCommand, "touch"},
	{"token blacklist", "SADD revoked abc", service.RefusesCommand, "sadd"},
	{"round robin", "SPOP proxies", service.LacksCommand, "spop"},
	{"Redis 8 compare and set", "SET k v IFEQ w", service.LacksOption, "set"},
	{"Django REST framework list", "SET throttle:1 " + strings.Repeat("x", 70_000), service.PassesBound, "set"},
	{"long key", "INCR " + strings.Repeat("k", 600), service.PassesBound, "incr"},
	{"database 16", "SELECT 16", service.LacksDatabase, "select"},
	{"limits moving window", "EVALSHA 741eab6300000000000000000000000000000000 1 k; EVAL %s 1 k",
		service.LacksScript, "eval"},
	{"register_script of redis-py", "SCRIPT LOAD %s", service.LacksScript, "script|load"},
	{"EVAL_RO", "EVAL_RO %s 1 k", service.LacksCommand, "eval_ro"},
	{"Redis 7 function", "FCALL limit 1 k", service.LacksCommand, "fcall"},
	{"socket.io adapter", "PUBLISH socket.io#/ hello", service.RefusesCommand, "publish"},
	{"sharded subscriber", "SSUBSCRIBE news", service.LacksCommand, "ssubscribe"},
	{"redis-py CacheConfig", "CLIENT TRACKING ON", service.RefusesCommand, "client|tracking"},
	{"rueidis DoCache", "CLIENT TRACKING ON OPTIN; CLIENT CACHING YES", service.RefusesCommand, "client|caching"},
	{"Spring Session", "CONFIG SET notify-keyspace-events Egx", service.RefusesCommand, "config|set"},
	{"unblocker", "CLIENT UNBLOCK 1", service.LacksSubcommand, "client|unblock"},
	{"bloom filter", "BF.ADD seen user:1", service.LacksCommand, "bf.add"},
	{"document store", "JSON.SET user:1 $ {}", service.LacksCommand, "json.set"},
	{"replica", "PSYNC ? -1", service.LacksCommand, "psync"},
	{"typing error", "INCRR k", service.LacksCommand, service.OtherCommand},
}

// TestWhatWeirRefusesIsSeen sends what programs really send and weir refuses. Each must be seen in the log, in the
// metric and by weir doctor, with the name of its client.
func TestWhatWeirRefusesIsSeen(t *testing.T) {
	p := start(t, "--data-dir=")
	for i, in := range refusedInputs {
		conn, err := redis.Dial("tcp", p.addr, redis.DialClientName(fmt.Sprintf("program-%d", i)))
		require.NoError(t, err)
		for line := range strings.SplitSeq(in.sends, "; ") {
			var args []any
			for word := range strings.FieldsSeq(line) {
				args = append(args, strings.Replace(word, "%s", lua, 1))
			}
			for range 2 { // the second time is not logged
				_, err = conn.Do(args[0].(string), args[1:]...)
			}
		}
		require.ErrorAs(t, err, new(redis.Error), in.program)
		require.NoError(t, conn.Close())
	}
	logged := make(map[string]int)
	for line := range strings.Lines(p.output()) {
		var of struct{ Level, Kind, Command, Client, Do string }
		require.NoError(t, json.Unmarshal([]byte(line), &of))
		if of.Level == "WARN" && of.Do != "" {
			logged[of.Client+" "+of.Kind+" "+of.Command]++
		}
	}
	page, err := http.Get(p.web + "/metrics")
	require.NoError(t, err)
	defer page.Body.Close()
	metrics, err := io.ReadAll(page.Body)
	require.NoError(t, err)
	found, _ := runDoctor(t, "--listen", p.addr, "--http", p.web[len("http://"):], "--data-dir=")
	for i, in := range refusedInputs {
		name := fmt.Sprintf("program-%d", i)
		assert.Equal(t, 1, logged[name+" "+in.kind+" "+in.command], "%s must be logged once: %v", in.program, in.sends)
		assert.Contains(t, string(metrics),
			fmt.Sprintf("weir_unsupported_commands_total{command=%q,kind=%q} 2\n", in.command, in.kind), in.program)
		assert.True(t, slices.ContainsFunc(found, func(f doctor.Finding) bool {
			return f.Verdict == doctor.Doubt && f.Check == "clients" && f.Do != "" &&
				strings.HasPrefix(f.Found, name+", ")
		}), "weir doctor must name %s: %s", name, in.program)
	}
	assert.NotContains(t, p.output(), "user:1", "no argument may be in the log")
}
