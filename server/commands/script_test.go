package commands

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/server/arg"
	"github.com/weir-project/weir/server/scripts"
	"github.com/weir-project/weir/server/service"
)

const (
	allowN     = "f52a5b566060d79fd321d695df55bc918339c4aa"
	flexible   = "a1de965f42e177aa339706bd580f049065eca79a"
	expressHit = "895b92e1712734e1b464999be23953485475357b"
	expressGet = "6aeb97ed6086dcdeafdc6fda3999a0d0e38ec96a"
	spring     = "0ad5736ed1c04aae6ec194376c784b89b8c08a7a"
	zeroToken  = "b7bb2fcc82b9c8fc49850e9223e78667a5387dbc"

	redisGCRASum = "868f66d2db4929999a50c5ed5f57985f3cff7461"
	fastifySum   = "b8a19d47785922bb04e7a9fdb49e90d89be1b8af"

	movingTake  = "741eab638ba93ed71020bb821c45c022d0fa02c4"
	movingLook  = "ad795214f59fe26d6fdec07973836dd16586f5ec"
	movingCount = "f2ef2962263bbe72f66f5bbd0da234e74d880068"
	movingFirst = "3136f0028c572d2959b5cdc5ec15b287fab6a9ff"
	movingWhole = "bf95c654b6be0a54713252ef2362a25546faf877"
	asyncTake   = "ad00ff6f099013f2aea94ed48c220cbf616c6a07"
	asyncOld    = "51d8e63a380bf7a715e9cc96b2fa6ad9e2e8788b"
	nestCount   = "f7788d43191d9ad66c866e8c63f3c3e361391849"
	throttle    = "29cc07bd431ccbf64637e5dcb60484560fdfa2da"
	throttled   = "1c5d436d6863e949247f4fa66fa1e32b7fa18da9"
	funnel      = "420ca604de4310d8301943a71390ee669720d640"
	releaseSlot = "a50243715157b186c5162c69e02eff3bf0c7994a"
	traefik     = "7d2a5c0821964964e7f36858db0f3c4a49951c4d"
	clearKeys   = "f2994557f1daca13bfef97c2a31ca4b174e031ca"

	slidingSetSum = "504c42a925470b7ef2e060d65cd0ece7956924c8"
)

// TestScriptErrors checks that an unknown script, or a wrong call of a known one, changes nothing and says why.
func TestScriptErrors(t *testing.T) {
	srv := newTestServer(t, Config{EnableDebug: true})
	c := srv.client(t)
	none := strings.Repeat("0", 40)
	for _, test := range []struct{ send, want string }{
		{"EVALSHA " + none + " 0", string(errNoScript)},
		{"EVALSHA abc 0", string(errNoScript)},
		{"EVALSHA " + none[1:] + "x 1 k", string(errNoScript)},
		{"EVALSHA " + allowN + " x", string(arg.ErrNotInteger) + ": numkeys must be the number of keys, not 'x'"},
		{"EVALSHA " + allowN + " -1", string(errNegKeys)},
		{"EVALSHA " + allowN + " 2 k", string(errFewKeys)},
		{"EVALSHA " + allowN + " 0 10 1 1 1", "ERR allowN takes 1 keys and 4 arguments"},
		{"EVALSHA " + allowN + " 1 k 10 1 1", "ERR allowN takes 1 keys and 4 arguments"},
		{"EVALSHA " + allowN + " 1 k 10 0 1 1", "ERR ARGV[2] must be above 0, not '0'"},
		{"EVALSHA " + allowN + " 1 k 10 1 1 nan",
			"ERR ARGV[4] must be a number from -9007199254740992 to 9007199254740992, not 'nan'"},
		{"EVALSHA " + allowN + " 1 k 10 1 1 0x10",
			"ERR ARGV[4] must be a number from -9007199254740992 to 9007199254740992, not '0x10'"},
		{"EVALSHA " + allowN + " 1 k 10 1 1 1e16",
			"ERR ARGV[4] must be a number from -9007199254740992 to 9007199254740992, not '1e16'"},
		{"EVALSHA " + flexible + " 1 k 1.5 1 1 1", "ERR ARGV[1] must be a whole number, not '1.5'"},
		{"EVALSHA " + expressHit + " 1 k 0", "ERR ARGV[1] must be above 0, not '0'"},
		{"EVALSHA " + zeroToken + " 2 a b 100 10 1 1", "ERR invalid expire time in 'setex' command"},
		{"EVALSHA " + redisGCRASum + " 1 k 1700000000000 5 0 1000 1", "ERR ARGV[3] must be above 0, not '0'"},
		{"EVALSHA " + redisGCRASum + " 1 k 1700000000000 1e15 1 1000 1", "ERR invalid expire time in 'set' command"},
		{"EVALSHA " + redisGCRASum + " 1 k 1700000000000 5 1e9 1 1", "ERR invalid expire time in 'set' command"},
		{"EVALSHA " + slidingSetSum + " 1 k 0 -1 1 1",
			"ERR ARGV[2] must be a time in milliseconds from 0 to 99999999999999, not '-1'"},
		{"EVALSHA " + slidingSetSum + " 1 k 0 100000000000000 1 1",
			"ERR ARGV[2] must be a time in milliseconds from 0 to 99999999999999, not '100000000000000'"},
		{"EVALSHA " + slidingSetSum + " 1 k 0 1.5 1 1", "ERR ARGV[2] must be a whole number, not '1.5'"},
		{"EVALSHA " + slidingSetSum + " 1 k 0 1 0 1", "ERR ARGV[3] must be above 0, not '0'"},
		{"EVALSHA " + slidingSetSum + " 1 k 0 1 1000001 1",
			"ERR ARGV[3] must be a limit from 1 to 1000000, not '1000001'"},
		{"EVALSHA " + slidingSetSum + " 1 k 0 1 1 0", "ERR ARGV[4] must be above 0, not '0'"},
		{"EVALSHA " + movingTake + " 1 k 1.5 131073 60 1", "ERR ARGV[2] must be at most 131072, not '131073'"},
		{"EVALSHA " + movingTake + " 1 k 1.5 1 0 1", "ERR ARGV[3] must be above 0, not '0'"},
		{"EVALSHA " + asyncTake + " 1 k 1.5 1000 131073 0", "ERR ARGV[3] must be at most 131072, not '131073'"},
		{"EVALSHA " + asyncTake + " 1 k -1 1000 1 0", "ERR ARGV[1] must be above 0, not '-1'"},
		{"EVALSHA " + throttle + " 1 k 170000000.5 1700000000 10 3",
			"ERR ARGV[1] must be a time in seconds since 1970, of ten digits, not '170000000.5'"},
		{"EVALSHA " + throttle + " 1 k 1700000000.5 01700000000 10 3",
			"ERR ARGV[2] must be a time in seconds since 1970, of ten digits, not '01700000000'"},
		{"EVALSHA " + throttle + " 1 k 1700000000.5 1700000000 8300000000 3",
			"ERR ARGV[3] must be a window that ends before the year 2286, not '8300000000'"},
		{"EVALSHA " + funnel + " 0 f 60 me", "ERR funnel takes 1 keys and 3 arguments"},
		{"EVALSHA " + funnel + " 2 f1 f2 f 60", "ERR funnel takes 1 keys and 3 arguments"},
		{"EVALSHA " + funnel + " 2 f1 f2 f 0 me",
			"ERR invalid expire time in 'set' command: EX must be a time above 0 and within 285,000 years, not '0'"},
		{"EVALSHA " + clearKeys + " 1 " + strings.Repeat("k", 513), string(errPatternLong)},
		{"EVALSHA " + clearKeys + " 2 a b", "ERR clear_keys takes 1 keys and 0 arguments"},
		{"EVALSHA " + clearKeys + " 1 a b", "ERR clear_keys takes 1 keys and 0 arguments"},
		{"EVALSHA " + allowN + " 1 " + strings.Repeat("k", 513) + " 10 1 1 1",
			"ERR key must be 1 to 512 bytes, not 513"},
		{`EVAL "return 1" 0`,
			"ERR weir runs no Lua, and does not recognise the script with the SHA-1 " +
				"e0e1f9fabfc9d4800c877a703b823ac0578ff8db; " + scriptNatives},
		{`EVAL ` + strings.Repeat("x", scripts.MaxBytes+1) + ` 0`,
			"ERR weir runs no Lua, and recognises no script of 8193 bytes; " + scriptNatives},
		{`SCRIPT LOAD "return 1"`,
			"ERR weir runs no Lua, and does not recognise the script with the SHA-1 " +
				"e0e1f9fabfc9d4800c877a703b823ac0578ff8db; " + scriptNatives},
		{"SCRIPT KILL", string(errNotBusy)},
		{"SCRIPT FLUSH NOW", "ERR SCRIPT FLUSH only support SYNC|ASYNC option"},
		{"SET k 1 EX 0", "ERR invalid expire time in 'set' command: EX must be a time above 0 and within 285,000 " +
			"years, not '0'"},
		{"INCRBY k x", string(arg.ErrNotInteger) + ": n must be a whole number, not 'x'"},
	} {
		assert.Equal(t, "-"+test.want, c.say(test.send), test.send)
	}
	assert.Zero(t, srv.lim.Len(0), "an error must not change any state")
	assert.Zero(t, srv.lim.Calls, "an error must not reach the limiter")
}

// TestScriptKnown checks that a recognised script need not be loaded, and that SCRIPT FLUSH does not remove it.
func TestScriptKnown(t *testing.T) {
	c := defaultClient(t)
	assert.Equal(t, "1 0 1", c.say("SCRIPT EXISTS "+strings.ToUpper(allowN)+" abc "+flexible))
	assert.Equal(t, "OK", c.say("SCRIPT FLUSH"))
	assert.Equal(t, "1", c.say("SCRIPT EXISTS "+allowN))
	assert.Equal(t, "a b", c.say("COMMAND GETKEYS EVALSHA "+spring+" 2 a b 1 2 3 4"))
	assert.Equal(t, "-ERR Invalid arguments specified for command: it must be EVAL script numkeys [key ...] [arg ...]",
		c.say("COMMAND GETKEYS EVAL x 2 a"))
}

// TestScriptReplies shows one reply of each form.
func TestScriptReplies(t *testing.T) {
	c := defaultClient(t)
	require.Equal(t, "OK", c.say("DEBUG CLOCK SET 1800000000000"))
	for _, test := range []struct{ send, want string }{
		{"EVALSHA " + allowN + " 1 rate:a 10 1 6 4", "*4\r\n:4\r\n:6\r\n$2\r\n-1\r\n$2\r\n24\r\n"},
		{"EVALSHA " + allowN + " 1 rate:a 10 1 7 7", "*4\r\n:0\r\n:0\r\n$1\r\n3\r\n$2\r\n24\r\n"},
		{"EVALSHA " + expressGet + " 1 rl:a", "*2\r\n$-1\r\n:-2\r\n"},
		{"EVALSHA " + expressHit + " 1 rl:a 1000", "*2\r\n:1\r\n:1000\r\n"},
		{"INCRBY rl:a 4", ":5\r\n"},
		{"EVALSHA " + expressGet + " 1 rl:a", "*2\r\n$1\r\n5\r\n:1000\r\n"},
		{"EVALSHA " + spring + " 2 s.tokens s.timestamp 2 5 '' 3", "*2\r\n:1\r\n:2\r\n"},
		{"EVALSHA " + spring + " 2 s.tokens s.timestamp 2 5 '' 3", "*2\r\n:0\r\n:2\r\n"},
		{"EVALSHA " + zeroToken + " 2 z ts 1 5 1800000000 5", ":1\r\n"},
		{"EVALSHA " + zeroToken + " 2 z ts 1 5 1800000000 1", "$-1\r\n"},
		{"EVALSHA " + redisGCRASum + " 1 g 1800000000000 5 1 1000 4.5",
			"*6\r\n:0\r\n:0\r\n:0\r\n:4500\r\n$3\r\n500\r\n$4\r\n1000\r\n"},
		{"EVALSHA " + redisGCRASum + " 1 g 1800000000000 5 1 1000 1",
			"*6\r\n:1\r\n:0\r\n:500\r\n:4500\r\n$4\r\n-500\r\n$4\r\n1000\r\n"},
		{"EVALSHA " + slidingSetSum + " 1 w 1799999940000 1800000000000 2 60000", "*3\r\n:1\r\n:1\r\n:0\r\n"},
		{"EVALSHA " + slidingSetSum + " 1 w 1799999939990 1799999999990 2 60000", "*3\r\n:1\r\n:0\r\n:0\r\n"},
		{"EVALSHA " + slidingSetSum + " 1 w 1799999940000 1800000000000 2 60000", "*3\r\n:0\r\n:0\r\n:59990\r\n"},
		{"EVALSHA " + movingTake + " 1 m 1800000000.25 3 60 2", ":1\r\n"},
		{"EVALSHA " + movingTake + " 1 m 1800000000.125 3 60 2", "$-1\r\n"},
		{"EVALSHA " + movingTake + " 1 m 1800000000.125 3 60 1", ":1\r\n"},
		{"EVALSHA " + movingLook + " 1 m 1800000000 3", "*2\r\n$13\r\n1800000000.25\r\n:3\r\n"},
		{"EVALSHA " + movingLook + " 1 m 1800000001 3", "$-1\r\n"},
		{"EVALSHA " + movingCount + " 1 m 1800000000 3", "*2\r\n$14\r\n1800000000.125\r\n:3\r\n"},
		{"EVALSHA " + movingCount + " 1 none 0 3", "$-1\r\n"},
		{"EVALSHA " + movingWhole + " 1 m 1800000000 3", "*2\r\n:1800000000\r\n:3\r\n"},
		{"EVALSHA " + movingTake + " 1 m2 1800000000.25 3 60 1", ":1\r\n"},
		{"EVALSHA " + movingTake + " 1 m2 1800000002.5 3 60 1", ":1\r\n"},
		{"EVALSHA " + movingWhole + " 1 m2 1800000000 3", "*2\r\n:1800000000\r\n:2\r\n"},
		{"EVALSHA " + movingFirst + " 1 m2 1800000000 3", "*2\r\n:1800000002\r\n:2\r\n"},
		{"EVALSHA " + movingFirst + " 1 none 0 3", "*0\r\n"},
		{"TTL m", ":60\r\n"},
		{"EVALSHA " + asyncTake + " 1 a 1800000000000.25 2000 2 0", "*3\r\n:2\r\n:1800000002\r\n:2\r\n"},
		{"EVALSHA " + asyncTake + " 1 a 1799999999999.5 2000 2 1", "*3\r\n:1\r\n:1800000002\r\n:2\r\n"},
		{"EVALSHA " + asyncOld + " 1 a 1799999999999.5 2000 2", "*3\r\n:1\r\n:1800000002\r\n:2\r\n"},
		{"EVALSHA " + asyncTake + " 1 a 1800000000000.5 2000 2 0", "*3\r\n:0\r\n:1800000001\r\n:2\r\n"},
		{"EVALSHA " + nestCount + " 1 n 5000", "*2\r\n:1\r\n:5000\r\n"},
		{"EVALSHA " + nestCount + " 1 n 9000", "*2\r\n:2\r\n:5000\r\n"},
		{"EVALSHA " + throttled + " 1 t 1800000000.5 1800000000 10 2", "*2\r\n:0\r\n:1800000010\r\n"},
		{"EVALSHA " + throttle + " 1 t 1800000000.5 1800000000 10 2", "*3\r\n:1\r\n:1800000010\r\n:1\r\n"},
		{"EVALSHA " + throttle + " 1 t 1800000010 1800000010 10 2", "*3\r\n:1\r\n$10\r\n1800000010\r\n:0\r\n"},
		{"EVALSHA " + throttle + " 1 t 1800000001 1800000001 10 2", "*3\r\n$-1\r\n$10\r\n1800000010\r\n:-1\r\n"},
		{"EVALSHA " + throttled + " 1 t 1800000001 1800000001 10 2", "*2\r\n$10\r\n1800000010\r\n:-1\r\n"},
		{"EVALSHA " + throttle + " 1 t 1800000010.0 1800000010 10 2", "*3\r\n:1\r\n:1800000020\r\n:1\r\n"},
		{"EVALSHA " + throttle + " 1 t 1800000009.9 1800000009 10 2", "*3\r\n:1\r\n:1800000019\r\n:1\r\n"},
		{"TTL t", ":20\r\n"},
		{"EVALSHA " + traefik + " 1 b 0.000001 2 60 1800000000000000 500000",
			"*3\r\n$4\r\ntrue\r\n$1\r\n0\r\n$1\r\n1\r\n"},
		{"EVALSHA " + traefik + " 1 b 0.000001 2 60 1800000000000000 500000",
			"*3\r\n$4\r\ntrue\r\n$1\r\n0\r\n$1\r\n0\r\n"},
		{"EVALSHA " + traefik + " 1 b 0.000001 2 60 1800000000750000 500000",
			"*3\r\n$4\r\ntrue\r\n$6\r\n250000\r\n$5\r\n-0.25\r\n"},
		{"EVALSHA " + traefik + " 1 b 0.000001 2 60 1800000000750000 500000",
			"*3\r\n$4\r\ntrue\r\n$7\r\n1250000\r\n$5\r\n-0.25\r\n"},
		{"TTL z", ":10\r\n"},
		{"TYPE z", "+string\r\n"},
		{"EVALSHA " + expressHit + " 1 z 1000", "-" + string(service.ErrWrongType) + "\r\n"},
	} {
		words := split(test.send)
		for i, w := range words {
			if w == "''" {
				words[i] = ""
			}
		}
		assert.Equal(t, test.want, c.raw(words...), test.send)
	}
}

// TestTypesOfScripts checks that what a script keeps has the type that it has in Redis.
func TestTypesOfScripts(t *testing.T) {
	c := defaultClient(t)
	runStepsOn(t, c, []step{
		{"", "EVALSHA a27501a87b1775642eb421bbfb630f1ed357f5ae 1 h 1 10 1800000000000 60", "1 9 1800000001000"},
		{"", "TYPE h", "hash"},
		{"", "HLEN h", "2"},
		{"", "HKEYS h", "tokens lastRefill"},
		{"", "HEXISTS h tokens", "1"},
		{"", "HEXISTS h limit", "0"},
		{"", "EVALSHA " + slidingSetSum + " 1 z 1799999940000 1800000000000 9 60000", "1 8 0"},
		{"", "EVALSHA " + slidingSetSum + " 1 z 1799999940000 1800000000000 9 60000", "1 7 0"},
		{"", "TYPE z", "zset"},
		{"", "ZCARD z", "2"},
		{"", "EVALSHA " + asyncTake + " 1 a 1000 500 3 0", "3 1 3"},
		{"", "EVALSHA " + asyncTake + " 1 a 1000 500 3 0", "2 1 3"}, // the same member
		{"", "ZCARD a", "1"},
		{"", "TYPE a", "zset"},
		{"", "EVALSHA " + asyncTake + " 1 a 2000 500 3 1", "3 2 3"},
		{"", "EXISTS a", "0"},
		{"", "EVALSHA " + throttle + " 1 t 1800000000.5 1800000000 10 2", "1 1800000010 1"},
		{"", "TYPE t", "hash"},
		{"", "HGETALL t", "start 1800000000 end 1800000010 count 1"},
		{"", "EVALSHA " + traefik + " 1 b 0.5 10 60 1000000 0", "true 0 9"},
		{"", "HGETALL b", "last 1000000 tokens 9"},
		{"", "EVALSHA " + movingTake + " 1 l 1.5 3 60 1", "1"},
		{"", "EVALSHA " + asyncTake + " 1 l 1000 500 3 0", "-" + string(service.ErrWrongType)},
		{"", "TYPE l", "list"},
		{"", "ZCARD l", "-" + string(service.ErrWrongType)},
		{"", "GET l", "-" + string(service.ErrWrongType)},
		{"", "EVALSHA " + expressHit + " 1 s 1000", "1 1000"},
		{"", "TYPE s", "string"},
		{"", "ZCARD s", "-" + string(service.ErrWrongType)},
		{"", "ZCARD h", "-" + string(service.ErrWrongType)},
		{"", "ZCARD none", "0"},
		{"", "HLEN none", "0"},
		{"", "HKEYS none", ""},
		{"", "RL.FIXED k 1m 10", "1 9 0 60000 10"},
		{"", "HEXISTS k used", "1"},
		{"", "ZCARD k", "-" + string(service.ErrWrongType)},
	})
}

// TestClearKeys checks the script by which limits forgets all limiters.
func TestClearKeys(t *testing.T) {
	c := defaultClient(t)
	runStepsOn(t, c, []step{
		{"", "EVALSHA " + movingTake + " 1 LIMITS:a 1.5 3 60 1", "1"},
		{"", "INCR LIMITS:b", "1"},
		{"", "INCR other", "1"},
		{"", "SCRIPT EXISTS " + clearKeys, "1"},
		{"", "EVALSHA " + clearKeys + " 1 LIMITS:*", "2"},
		{"", "EVALSHA " + clearKeys + " 1 LIMITS:*", "0"},
		{"", "EVALSHA " + clearKeys + ` 1 ""`, "0"},
		{"", "GET other", "1"},
		{"", "MULTI", "OK"},
		{"", "EVALSHA " + clearKeys + " 1 *", "-" + string(errAlone)},
		{"", "DISCARD", "OK"},
		{"", "SELECT 1", "OK"},
		{"", "EVALSHA " + clearKeys + " 1 *", "0"},
		{"", "SELECT 0", "OK"},
		{"", "EVALSHA " + clearKeys + " 1 *", "1"},
	})
}

// TestFunnel checks the script by which Laravel takes the first free slot, and the script that gives it back.
func TestFunnel(t *testing.T) {
	c := defaultClient(t)
	take := "EVALSHA " + funnel + " 2 f1 f2 f 2 "
	runStepsOn(t, c, []step{
		{"", take + "a", "f1"},
		{"", take + "b", "f2"},
		{"", take + "c", "nil"},
		{"", "EVALSHA " + releaseSlot + " 1 f1 b", "0"},
		{"", "EVALSHA " + releaseSlot + " 1 f1 a", "1"},
		{"1500", take + "7", "f1"},
		{"501", take + "d", "f2"},
		{"", "GET f1", "7"},
		{"", "TTL f2", "2"},
		{"", "MULTI", "OK"},
		{"", take + "e", "-" + string(errAlone)},
		{"", "DISCARD", "OK"},
		{"", "SELECT 3", "OK"},
		{"", take + "e", "f1"},
		{"", "RL.BLOCK f2 1m", "OK"},
		{"", take + "g", "-" + string(service.ErrKeyBlocked)},
	})
}

// TestScriptOnBlockedKey checks that a block of the key denies in every script.
func TestScriptOnBlockedKey(t *testing.T) {
	c := defaultClient(t)
	runStepsOn(t, c, []step{
		{"", "RL.BLOCK k 1500ms", "OK"},
		{"", "EVALSHA " + allowN + " 1 k 10 1 1 1", "0 0 1.5 1.5"},
		{"", "EVALSHA " + flexible + " 1 k 1 5 10 5", "2147483647 1500"},
		{"", "EVALSHA " + redisGCRASum + " 1 k 1700000000000 5 2 1000 1", "1 0 1500 1500 -1500 500"},
		{"", "EVALSHA " + spring + " 2 k k2 2 5 '' 3", "0 0"},
		{"", "EVALSHA " + slidingSetSum + " 1 k 0 1 1 60000", "0 0 1500"},
		{"", "EVALSHA " + asyncTake + " 1 k 1800000000000 5000 5 0", "0 1800000001 5"},
		{"", "EVALSHA " + throttle + " 1 k 1800000000.5 1800000000 10 2", "nil 1800000002 0"},
		{"", "EVALSHA " + throttled + " 1 k 1800000000.5 1800000000 10 2", "1800000002 0"},
		{"", "EVALSHA " + traefik + " 1 k 0.000001 2 60 1800000000000000 5000000", "true 5000001 0"},
		{"", "EVALSHA " + movingTake + " 1 k 1800000000 5 60 1", "nil"},
		{"", "EVALSHA " + movingLook + " 1 k 1799999940 5", "1799999941.5 2147483647"}, // + 60 s: the end of the block
		{"1500", "EVALSHA " + flexible + " 1 k 1 5 10 5", "1 5000"},
	})
}

// TestCountExpiry checks that, as in Redis, a key still exists at the millisecond of its expiry.
func TestCountExpiry(t *testing.T) {
	c := defaultClient(t)
	runStepsOn(t, c, []step{
		{"", "SET k 7 PX 100", "OK"}, {"100", "GET k", "7"}, {"", "PTTL k", "0"}, {"", "INCR k", "8"},
		{"1", "GET k", "nil"},
		{"", "DECR k", "-1"}, {"", "PTTL k", "-1"}, {"", "EXPIRE k 1", "1"}, {"", "PTTL k", "1000"},
		{"", "EXPIRE k -1", "1"}, {"", "EXPIRE k 1", "0"},
		{"", "INCRBY k 9007199254740992", "9007199254740992"}, {"", "INCR k", "-" + string(service.ErrOverflow)},
		{"", "DECRBY k 2", "9007199254740990"},
		{"", "DEL k", "1"}, {"", "EXISTS k", "0"},
	})
}

// TestScriptsInTransactions checks scripts inside MULTI, which is how rate-limiter-flexible sends them.
func TestScriptsInTransactions(t *testing.T) {
	c := defaultClient(t)
	runStepsOn(t, c, []step{
		{"", "EVALSHA " + flexible + " 1 k 2 5 10 5", "2 5000"},
		{"", "MULTI", "OK"}, {"", "GET k", "QUEUED"}, {"", "EVALSHA " + flexible + " 1 k 1 5 10 5", "QUEUED"},
		{"", "PTTL k", "QUEUED"},
		{"", "EXEC", "2 3 5000 5000"},
	})
}
