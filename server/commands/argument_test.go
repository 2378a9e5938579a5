package commands

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/weir-project/weir/limits"
	"github.com/weir-project/weir/server/arg"
)

const (
	wholeTo53 = "must be a whole number from 1 to 9007199254740992"
	rates     = "must be like 10/s, 5/m or 1/6s (per ms, s, m, h, d or w; a bare 10 is 10/s)"
	durations = "must be like 30s, 500ms, 1m, 1h or 1d (in ms, s, m, h, d or w; a bare 60 is 60s)"
)

// argumentErrors lists every wrong argument with its exact answer.
var argumentErrors = []struct{ send, want string }{
	{`RL.TOKENBUCKET "" 10/s 100`, "ERR key must be 1 to 512 bytes, not 0"},
	{"RL.TOKENBUCKET " + strings.Repeat("k", 513) + " 10/s 100", "ERR key must be 1 to 512 bytes, not 513"},
	{"RL.TOKENBUCKET k abc 100", "ERR rate " + rates + ", not 'abc'"},
	{"RL.TOKENBUCKET k 0 100", "ERR rate " + rates + ", not '0'"},
	{"RL.TOKENBUCKET k 10/sec 100", "ERR rate " + rates + ", not '10/sec'"},
	{"RL.TOKENBUCKET k 10/second 100", "ERR rate " + rates + ", not '10/second'"},
	{"RL.TOKENBUCKET k 1/367d 100", "ERR rate must be given per at most 366 days, not '1/367d'"},
	{"RL.TOKENBUCKET k 10/s 0", "ERR burst " + wholeTo53 + ", not '0'"},
	{"RL.TOKENBUCKET k 10/s -1", "ERR burst " + wholeTo53 + ", not '-1'"},
	{"RL.TOKENBUCKET k 10/s 9007199254740993", "ERR burst " + wholeTo53 + ", not '9007199254740993'"},
	{"RL.TOKENBUCKET k 10/s 18446744073709551617", "ERR burst " + wholeTo53 + ", not '18446744073709551617'"},
	{"RL.TOKENBUCKET k 10/s 1.5", "ERR burst " + wholeTo53 + ", not '1.5'"},
	{"RL.TOKENBUCKET k 10/s 100 COST", "ERR COST needs a value: COST n"},
	{"RL.TOKENBUCKET k 10/s 100 COST x", "ERR COST must be a whole number from 0 to 9007199254740992, not 'x'"},
	{"RL.TOKENBUCKET k 10/s 100 COST -1", "ERR COST must be a whole number from 0 to 9007199254740992, not '-1'"},
	{"RL.TOKENBUCKET k 10/s 100 cost 1 Cost 2", "ERR COST is given twice"},
	{"RL.TOKENBUCKET k 10/s 100 PARTIAL PARTIAL", "ERR PARTIAL is given twice"},
	{"RL.TOKENBUCKET k 10/s 100 MAXWAIT soon", "ERR MAXWAIT " + durations + ", not 'soon'"},
	{"RL.TOKENBUCKET k 10/s 100 MAXWAIT 367d", "ERR MAXWAIT must be at most 366 days, not '367d'"},
	{"RL.TOKENBUCKET k 10/s 100 PARTIAL MAXWAIT 1s", "ERR PARTIAL and MAXWAIT exclude each other"},
	{`RL.TOKENBUCKET k 10/s 100 ID ""`, "ERR ID must be 1 to 64 bytes, not 0"},
	{"RL.TOKENBUCKET k 10/s 100 FIRST",
		"ERR option must be COST n, ID token, PARTIAL, MAXWAIT duration, FROM address, not 'FIRST'"},
	{"RL.LEAKYBUCKET k x 1", "ERR rate " + rates + ", not 'x'"},
	{"RL.LEAKYBUCKET k 10/s -1", "ERR capacity must be a whole number from 0 to 9007199254740992, not '-1'"},
	{"RL.LEAKYBUCKET k 10/s 1 PARTIAL", "ERR option must be COST n, ID token, FROM address, not 'PARTIAL'"},
	{"RL.FIXED k fortnight 1", "ERR window " + durations + "; or DAY, WEEK, MONTH, YEAR or FOREVER, not 'fortnight'"},
	{"RL.FIXED k 0 1", "ERR window must be at least 1ms, not '0'"},
	{"RL.FIXED k 400d 1", "ERR window must be at most 366 days, not '400d'"},
	{"RL.FIXED k 1m x", "ERR max " + wholeTo53 + ", not 'x'"},
	{"RL.FIXED k 1m 1 TZ UTC", "ERR TZ goes with a window of DAY, WEEK, MONTH or YEAR only"},
	{"RL.FIXED k FOREVER 1 TZ UTC", "ERR TZ goes with a window of DAY, WEEK, MONTH or YEAR only"},
	{"RL.FIXED k DAY 1 FIRST", "ERR FIRST goes with a window of a duration only, like 1m"},
	{"RL.FIXED k FOREVER 1 FIRST", "ERR FIRST goes with a window of a duration only, like 1m"},
	{"RL.FIXED k DAY 1 TZ Mars/Olympus",
		"ERR TZ must be an IANA time zone like UTC or Europe/Berlin, not 'Mars/Olympus'"},
	{"RL.FIXED k DAY 1 TZ Local", "ERR TZ must be an IANA time zone like UTC or Europe/Berlin, not 'Local'"},
	{"RL.FIXED k DAY 1 TZ ../../etc/passwd",
		"ERR TZ must be an IANA time zone like UTC or Europe/Berlin, not '../../etc/passwd'"},
	{`RL.FIXED k DAY 1 TZ ""`, "ERR TZ must be an IANA time zone like UTC or Europe/Berlin, not ''"},
	{"RL.SLIDING k x 1", "ERR window " + durations + ", not 'x'"},
	{"RL.SLIDING k 1m 1000001", "ERR max must be a whole number from 1 to 1000000, not '1000001'"},
	{"RL.SLIDINGCOUNTER k 1m 0", "ERR max " + wholeTo53 + ", not '0'"},
	{"RL.ACQUIRE k 0 1m", "ERR max " + wholeTo53 + ", not '0'"},
	{"RL.ACQUIRE k 1 never", "ERR ttl " + durations + ", not 'never'"},
	{`RL.ACQUIRE k 1 1m HOLDER ""`, "ERR HOLDER must be 1 to 64 bytes, not 0"},
	{"RL.ACQUIRE k 1 1m HOLDER " + strings.Repeat("h", 65), "ERR HOLDER must be 1 to 64 bytes, not 65"},
	{"RL.STRIKE k x 3 1m", "ERR window " + durations + ", not 'x'"},
	{"RL.STRIKE k 1h x 1m", "ERR threshold must be a whole number from 1 to 1000000, not 'x'"},
	{"RL.STRIKE k 1h 3 1m 3 2m", "ERR threshold must be above the one before it, not '3'"},
	{"RL.STRIKE k 1h 3 1m 4", "ERR threshold 4 needs a penalty, like 30s, or DELAY and a time"},
	{"RL.STRIKE k 1h 3 1m 4 DELAY", "ERR threshold 4 needs a penalty, like 30s, or DELAY and a time"},
	{"RL.STRIKE k 1h 3 DELAY ATTEMPTS", "ERR penalty " + durations + ", not 'ATTEMPTS'"},
	{"RL.SLIDING k 60ns 5", "ERR window must be at least 1ms, not '60ns'"},
	{"RL.SLIDINGCOUNTER k 999us 5", "ERR window must be at least 1ms, not '999us'"},
	{"RL.FIXED k 60ns 5 FIRST", "ERR window must be at least 1ms, not '60ns'"},
	{"RL.STRIKE k 60ns 3 1h", "ERR window must be at least 1ms, not '60ns'"},
	{"RL.STRIKE k 1h 3 60ns", "ERR penalty must be at least 1ms, not '60ns'"},
	{"RL.ACQUIRE k 1 60ns", "ERR ttl must be 0 or at least 1ms, not '60ns'"},
	{"RL.RENEW k a 60ns", "ERR ttl must be 0 or at least 1ms, not '60ns'"},
	{"RL.RESERVE p k 1 60ns", "ERR ttl must be at least 1ms, not '60ns'"},
	{"RL.BLOCK k 60ns", "ERR duration must be at least 1ms, not '60ns'"},
	{"RL.TOKENBUCKET k 10/s 100 MAXWAIT 60ns", "ERR MAXWAIT must be 0 or at least 1ms, not '60ns'"},
	{"RL.POLICY SET p LIMIT SLIDING 60ns 5", "ERR window must be at least 1ms, not '60ns'"},
	{"RL.POLICY SET p LIMIT SLIDING 1m 5 RETRYAFTER 60ns", "ERR RETRYAFTER must be at least 1ms, not '60ns'"},
	{"RL.POLICY OVERRIDE p k UNLIMITED TTL 60ns", "ERR TTL must be at least 1ms, not '60ns'"},
	{"RL.STRIKE k 1h 3 DELAY 0", "ERR penalty must be at least 1ms, not '0'"},
	{"RL.STRIKE k 1h 3 1m ATTEMPTS ATTEMPTS", "ERR ATTEMPTS is given twice"},
	{"RL.STRIKE k 1h 3 1m EXTEND 4 1m", "ERR option must be COST n, ID token, ATTEMPTS, EXTEND, FROM address, not '4'"},
	{"RL.FORGIVE p", "ERR wrong number of arguments for 'rl.forgive' command: RL.FORGIVE policy key [policy key " +
		"...] [ID token]"},
	{"RL.FORGIVE p k q", "ERR policy 'q' needs a key: policies and keys come in pairs"},
	{"RL.FORGIVE p policy|p|0|k", string(arg.ErrReservedKey)},
	{"RL.FORGIVE p k COST 1", "ERR option must be ID token, not 'COST'"},
	{"RL.STRIKE k 1h 3 0", "ERR penalty must be at least 1ms, not '0'"},
	{"RL.STRIKE k 1h COST 3", "ERR threshold must be a whole number from 1 to 1000000, not 'COST'"},
	{"RL.STRIKE k 1h 3 1m COST x", "ERR COST must be a whole number from 0 to 9007199254740992, not 'x'"},
	{"RL.STRIKE k 1h" + strikes(17), "ERR a strike limit has at most 16 steps"},

	{`RL.RELEASE k ""`, "ERR holder must be 1 to 64 bytes, not 0"},
	{"RL.RELEASE k h COST 1", "ERR option must be ID token, not 'COST'"},
	{"RL.RENEW k h x", "ERR ttl " + durations + ", not 'x'"},
	{"RL.REFUND k 0", "ERR n " + wholeTo53 + ", not '0'"},
	{"RL.RESERVE p k 0 1m", "ERR n " + wholeTo53 + ", not '0'"},
	{"RL.RESERVE p k 9007199254740993 1m", "ERR n " + wholeTo53 + ", not '9007199254740993'"},
	{"RL.RESERVE p k 1 0", "ERR ttl must be at least 1ms, not '0'"},
	{"RL.RESERVE p k 1 367d", "ERR ttl must be at most 366 days, not '367d'"},
	{`RL.RESERVE "" k 1 1m`, "ERR policy must be 1 to 64 bytes, not 0"},
	{"RL.RESERVE p policy|p|0|k 1 1m", string(arg.ErrReservedKey)},
	{"RL.RESERVE p k 1 1m AND", "ERR AND needs a policy and a key"},
	{"RL.RESERVE p k 1 1m AND ID r", "ERR AND needs a policy and a key"},
	{"RL.RESERVE p k 1 1m AND q", "ERR policy 'q' needs a key: policies and keys come in pairs"},
	{"RL.RESERVE p k 1 1m AND p k", "ERR policy 'p' is named twice for the key 'k'"},
	{"RL.RESERVE p k 1 1m q j", "ERR option must be ID token, PRIORITY high|normal, FROM address, " +
		"EXPIRE return|take, SPLIT, not 'q'"},
	{"RL.RESERVE p k 1 1m COST 2", "ERR option must be ID token, PRIORITY high|normal, FROM address, " +
		"EXPIRE return|take, SPLIT, not 'COST'"},
	{"RL.RESERVE p k 1 1m ELSE", "ERR ELSE needs a policy and a key"},
	{"RL.RESERVE p k 1 1m ELSE SPLIT", "ERR ELSE needs a policy and a key"},
	{"RL.RESERVE p k 1 1m ELSE q", "ERR policy 'q' needs a key: policies and keys come in pairs"},
	{"RL.RESERVE p k 1 1m ELSE p k", "ERR policy 'p' is named twice for the key 'k'"},
	{"RL.RESERVE p k 1 1m ELSE p j ELSE p i ELSE p h ELSE p g", "ERR ELSE may be given at most 3 times"},
	{"RL.RESERVE p k 1 1m SPLIT", "ERR SPLIT needs ELSE before it, with a policy and a key that pay the rest"},
	{"RL.RESERVE p k 1 1m ID a ELSE p j", "ERR ELSE must come before the options"},
	{"RL.CHECK p k ELSE", "ERR ELSE needs a policy and a key"},
	{"RL.CHECK p k ELSE COST 2", "ERR ELSE needs a policy and a key"},
	{"RL.CHECK p k SPLIT", "ERR SPLIT needs ELSE before it, with a policy and a key that pay the rest"},
	{"RL.CHECK p k ELSE p j ELSE p k", "ERR policy 'p' is named twice for the key 'k'"},
	{"RL.FORGIVE p k ELSE p j", "ERR option must be ID token, not 'ELSE'"},
	{"RL.RESERVE p " + strings.Repeat("k", 400) + " 1 1m ELSE q " + strings.Repeat("j", 352), "ERR the policies and " +
		"keys of a hold must be at most 800 bytes together, four for each pair included, and 24 for each alternative, not 810"},
	{"RL.RESERVE p k 1 1m EXPIRE never", "ERR EXPIRE must be return or take, not 'never'"},
	{"RL.EXTEND r 1 SEQ 0", "ERR SEQ " + wholeTo53 + ", not '0'"},
	{"RL.EXTEND r 1 PARTIAL TTL 1m", "ERR SEQ k is missing: the number of this extension of the hold, 1 for the first"},
	{"RL.EXTEND r 1 SEQ 1 TTL 0", "ERR TTL must be at least 1ms, not '0'"},
	{"RL.EXTEND r -1 SEQ 1", "ERR n must be a whole number from 0 to 9007199254740992, not '-1'"},
	{"RL.COMMIT r 1 KEPT", "ERR option must be KEEP, not 'KEPT'"},
	{"RL.COMMIT r 1 KEEP 2", "ERR option must be KEEP, not '2'"},
	{"RL.RESERVE p k 1 1m ID " + strings.Repeat("i", 65), "ERR ID must be 1 to 64 bytes, not 65"},
	{"RL.RESERVE p " + strings.Repeat("k", 500) + " 1 1m AND q " + strings.Repeat("j", 300),
		"ERR the policies and keys of a hold must be at most 800 bytes together, four for each pair included, not 810"},
	{`RL.COMMIT "" 1`, "ERR id must be 1 to 64 bytes, not 0"},
	{"RL.COMMIT r -1", "ERR actual must be a whole number from 0 to 9007199254740992, not '-1'"},
	{"RL.COMMIT r 9007199254740993",
		"ERR actual must be a whole number from 0 to 9007199254740992, not '9007199254740993'"},
	{"RL.COMMIT r 1 NO", "ERR option must be KEEP, not 'NO'"},
	{"RL.COMMIT r 1 KEEP KEEP", "ERR KEEP is given twice"},
	{"RL.RESERVE p k 1 1m ID i and q k", "ERR AND must come before the options"},
	{"RL.CHECK p k COST 1 ELSE q k", "ERR ELSE must come before the options"},
	{"RL.REFUND k 1 ELSE q k", "ERR option must be ID token, not 'ELSE'"},
	{"RL.CANCEL " + strings.Repeat("i", 65), "ERR id must be 1 to 64 bytes, not 65"},
	{`RL.RESET k ""`, "ERR key must be 1 to 512 bytes, not 0"},
	{`RL.RESET k ID ""`, "ERR ID must be 1 to 64 bytes, not 0"},
	{"RL.BLOCK k 0", "ERR duration must be at least 1ms, not '0'"},
	{"RL.BLOCK k x", "ERR duration " + durations + "; or FOREVER, not 'x'"},
	{"RL.BLOCK k 1h REASON " + strings.Repeat("r", 129), "ERR REASON must be 1 to 128 bytes, not 129"},
	{"RL.BLOCK k 1h GT GT", "ERR GT is given twice"},
	{"RL.BLOCK k 1h EVERYWHERE GT", "ERR GT goes with a block of the key alone, not with EVERYWHERE"},
	{"RL.UNBLOCK k WHY x", "ERR option must be ID token, not 'WHY'"},

	{"CL.THROTTLE k -1 30 60", "ERR max_burst must be a whole number from 0 to 9007199254740991, not '-1'"},
	{"CL.THROTTLE k 15 0 60", "ERR count " + wholeTo53 + ", not '0'"},
	{"CL.THROTTLE k 15 30 0", "ERR period must be a whole number from 1 to 9223372036854775807, not '0'"},
	{"CL.THROTTLE k 15 1 31622401",
		"ERR count per period must be at least 1 unit in 366 days and at most 9007199254740992 units a nanosecond"},
	{"CL.THROTTLE k 15 30 60 -1", "ERR quantity must be a whole number from 0 to 9007199254740992, not '-1'"},
	{"CL.THROTTLE k 15 30 60 1 1", "ERR syntax error: CL.THROTTLE key max_burst count period [quantity]"},
	{"THROTTLE k 0 30 60", "ERR max_burst " + wholeTo53 + ", not '0'"},
	{"GCRA k 1 1 0", "ERR period must be a number of seconds above 0 and below 1000000000000, with at most nine " +
		"decimals, not '0'"},
	{"GCRA k 1 1 1e3", "ERR period must be a number of seconds above 0 and below 1000000000000, with at most nine " +
		"decimals, not '1e3'"},
	{"GCRA k 1 1 1000000000000",
		"ERR period must be a number of seconds above 0 and below 1000000000000, with at most nine decimals, not " +
			"'1000000000000'"},
	{"GCRA k 1 1 -0.5", "ERR period must be a number of seconds above 0 and below 1000000000000, with at most nine " +
		"decimals, not '-0.5'"},
	{"GCRA k 1 1 1 TOKENS 0", "ERR TOKENS " + wholeTo53 + ", not '0'"},
	{"GCRA k 1 1 1 COUNT 1", "ERR syntax error: GCRA key max_burst count period [TOKENS n]"},
	{"INCREX k BYFLOAT 1.5", string(errByFloat)},
	{"INCREX k BYINT x", "ERR BYINT must be a whole number from -9223372036854775808 to 9223372036854775807, not 'x'"},
	{"INCREX k BYINT 1 BYINT 1",
		"ERR syntax error: INCREX key [BYINT n] [LBOUND n] [UBOUND n] [SATURATE] [EX seconds|PX ms|EXAT time|PXAT " +
			"time|PERSIST] [ENX]"},
	{"INCREX k EX", "ERR syntax error: INCREX key [BYINT n] [LBOUND n] [UBOUND n] [SATURATE] [EX seconds|PX ms|EXAT " +
		"time|PXAT time|PERSIST] [ENX]"},
	{"INCREX k EX 1 PX 1",
		"ERR syntax error: INCREX key [BYINT n] [LBOUND n] [UBOUND n] [SATURATE] [EX seconds|PX ms|EXAT time|PXAT " +
			"time|PERSIST] [ENX]"},
	{"INCREX k EX 0", "ERR EX must be a whole number from 1 to 9223372036, not '0'"},
	{"INCREX k EX 31622401", "ERR EX must be at most 366 days ahead, not '31622401'"},
	{"INCREX k ENX", "ERR ENX needs EX, PX, EXAT or PXAT"},
	{"INCREX k PERSIST ENX", "ERR ENX needs EX, PX, EXAT or PXAT"},
	{"INCREX k LBOUND 2 UBOUND 1", "ERR LBOUND must not be above UBOUND"},

	{"RL.EXPLAIN PING", "ERR command must be a decision, like RL.TOKENBUCKET, not 'PING'"},
	{"RL.EXPLAIN RL.RESET k", "ERR command must be a decision, like RL.TOKENBUCKET, not 'RL.RESET'"},
	{"RL.EXPLAIN RL.FIXED k 1m",
		"ERR wrong number of arguments for 'rl.fixed' command: RL.FIXED key window|DAY|WEEK|MONTH|YEAR|FOREVER max " +
			"[COST n] [PARTIAL] [FIRST] [TZ zone] [FROM address] [ID token], like RL.FIXED ip:203.0.113.9 1m 2 FIRST"},
	{"RL.EXPLAIN RL.FIXED k 1m x", "ERR max " + wholeTo53 + ", not 'x'"},
	{"SCAN x", "ERR invalid cursor: cursor must be 0, or what SCAN answered, not 'x'"},
	{"SCAN 0 COUNT 0", "ERR COUNT must be a whole number from 1 to 9223372036854775807, not '0'"},
	{"SCAN 0 LIMIT 1", "ERR syntax error: SCAN cursor [MATCH pattern] [COUNT n] [TYPE algorithm]"},
	{"SCAN 0 MATCH", "ERR syntax error: SCAN cursor [MATCH pattern] [COUNT n] [TYPE algorithm]"},
	{"SCAN 0 MATCH " + strings.Repeat("*", 513), string(errPatternLong)},
	{"KEYS " + strings.Repeat("*", 513), string(errPatternLong)},
	{"MEMORY USAGE k SAMPLES many", "ERR SAMPLES must be a whole number from 0 to 9223372036854775807, not 'many'"},
	{"CLIENT TRACKING MAYBE", "ERR syntax error: CLIENT TRACKING ON|OFF [OPTIN] [OPTOUT] [BCAST] [PREFIX prefix] " +
		"[REDIRECT id] [NOLOOP]"},
	{"MEMORY USAGE k DEPTH 1", "ERR syntax error: MEMORY USAGE key [SAMPLES n]"},
	{"FLUSHALL NOW", "ERR syntax error: FLUSHALL [ASYNC|SYNC]"},
	{"SELECT 16", string(errDBIndex)},
	{"SELECT x", "ERR value is not an integer or out of range: index must be 0 to 15, not 'x'"},
	{"WAIT x 0", "ERR value is not an integer or out of range: replicas must be a whole number from 0, not 'x'"},
	{"DEBUG CLOCK SET 1", "ERR the clock cannot be set back"},
	{"DEBUG CLOCK SET x", "ERR ms must be a whole number from 0 to 2305843009213, not 'x'"},
	{"DEBUG CLOCK ADVANCE -1", "ERR ms must be a whole number from 0 to 2304843009213, not '-1'"},
	{"DEBUG CLOCK BACK", "ERR syntax error: DEBUG CLOCK GET|SET ms|ADVANCE ms [us]"},
	{"DEBUG SLEEP 61", "ERR seconds must be a number above 0, at most 60, not '61'"},

	{"RL.TOKENBUCKET k 10/s",
		"ERR wrong number of arguments for 'rl.tokenbucket' command: RL.TOKENBUCKET key rate burst [COST n] " +
			"[PARTIAL] [MAXWAIT duration] [FROM address] [ID token], like RL.TOKENBUCKET user:42 10/s 100"},
	{"client setname", "ERR wrong number of arguments for 'client|setname' command: CLIENT SETNAME name"},
	{"CLIENT", "ERR wrong number of arguments for 'client' command: CLIENT subcommand [argument ...]; CLIENT " +
		"HELP lists them"},
	{"CLIENT MAINT_NOTIFICATIONS ON", "ERR unknown subcommand 'MAINT_NOTIFICATIONS'. Try CLIENT HELP."},
	{"resett foo", "ERR unknown command 'resett', with args beginning with: 'foo'  (did you mean RESET?)"},
	{"LPUSH a b", "ERR unknown command 'LPUSH', with args beginning with: 'a' 'b'  (weir keeps limits, and no " +
		"hashes, lists, sorted sets or streams: docs/migrating.md says what replaces them)"},
}

func strikes(n int) (text string) {
	for i := range n {
		text += " " + decimal(int64(i+1)) + " 1s"
	}
	return text
}

func TestArgumentErrors(t *testing.T) {
	srv := newTestServer(t, Config{EnableDebug: true})
	c := srv.client(t)
	for _, test := range argumentErrors {
		assert.Equal(t, "-"+test.want, c.say(test.send), test.send)
		assert.Equal(t, "PONG", c.say("PING"), "the next command must be answered")
	}
	assert.Zero(t, srv.lim.Len(0), "an error must not change any state")
	assert.Zero(t, srv.lim.Calls, "an error must not reach the limiter")
}

func TestQuotingIsSafe(t *testing.T) {
	c := defaultClient(t)
	got := c.raw("RL.FIXED", "k", "1m", "a\r\n+OK\x00'\xff"+strings.Repeat("x", 100))
	assert.Equal(t, 1, strings.Count(got, "\r\n"))
	assert.Contains(t, got, `not 'a\r\n+OK\x00'\xff`)
	assert.Contains(t, got, "xxx'...")
	assert.Less(t, len(got), 250)

	got = c.raw("no\r\nsuch", strings.Repeat("y", 1000), "z")
	assert.Equal(t, "-ERR unknown command 'no  such', with args beginning with: '"+strings.Repeat("y", 128)+"' \r\n",
		got)
}

func TestParseInt(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "7": 7, "-7": -7, "9223372036854775807": 1<<63 - 1, "-9223372036854775808": -1 << 63, "007": 7, "-0": 0,
	} {
		n, ok := limits.Int([]byte(text))
		assert.True(t, ok, text)
		assert.Equal(t, want, n)
	}
	for _, text := range []string{"", "-", "+1", " 1", "1 ", "1.0", "x", "9223372036854775808", "-9223372036854775809",
		"99999999999999999999", "0x1"} {
		_, ok := limits.Int([]byte(text))
		assert.False(t, ok, text)
	}
}
