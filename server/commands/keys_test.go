package commands

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limits"
	"github.com/weir-project/weir/server/timezone"
)

func TestLookingAtKeys(t *testing.T) {
	c := defaultClient(t)
	for _, test := range []struct{ send, want string }{
		{"RANDOMKEY", "nil"}, {"DBSIZE", "0"}, {"KEYS *", ""}, {"TTL k", "-2"}, {"PTTL k", "-2"}, {"TYPE k", "none"},
		{"EXISTS k k", "0"},
		{"MEMORY USAGE k", "nil"}, {"OBJECT ENCODING k", "nil"}, {"RL.INSPECT k", ""}, {"HGETALL k", ""},
		{`TYPE ""`, "none"},
		{"RL.TOKENBUCKET k 10/s 100 COST 15", "1 85 0 1500 100"},
		{"TTL k", "2"}, {"PTTL k", "1500"}, {"TYPE k", "tokenbucket"}, {"EXISTS k k x", "2"},
		{"RANDOMKEY", "k"}, {"DBSIZE", "1"},
		{"KEYS *", "k"}, {"KEYS x*", ""}, {"OBJECT ENCODING k", "packed"},
		{"OBJECT FREQ k", "-ERR unknown subcommand 'FREQ'. Try OBJECT HELP."},
		{"RL.FIXED f FOREVER 5", "1 4 0 -1 5"}, {"TTL f", "-1"}, {"PTTL f", "-1"}, {"TYPE f", "fixed"},
		{"RL.INSPECT f", "algorithm fixed rule FOREVER 5 limit 5 used 1 remaining 4 idle_in_ms -1 blocked 0 " +
			"blocked_ms 0 blocked_by  reason  penalty_ms 0 holders 0 bytes *"},
		{"DEBUG CLOCK ADVANCE 1500", "OK"}, {"EXISTS k", "0"}, {"DBSIZE", "1"}, {"TYPE k", "none"},
		{"RL.BLOCK b FOREVER REASON x", "OK"},
		{"HGETALL b", "algorithm none rule  limit 0 used 0 remaining 0 idle_in_ms 0 blocked 1 blocked_ms -1 " +
			"blocked_by b reason x penalty_ms 0 holders 0 bytes *"},
		{"TTL b", "-1"}, {"RL.BLOCK b 90s", "OK"}, {"TTL b", "90"}, {"RL.FIXED b 1h 5", "0 0 90000 90000 5"},
		{"PTTL b", "90000"},
		{"FLUSHDB ASYNC", "OK"}, {"DBSIZE", "0"}, {"FLUSHALL", "OK"}, {"FLUSHALL sync", "OK"},
	} {
		matchReply(t, test.want, c.say(test.send), test.send)
	}
	c.say("RL.FIXED f FOREVER 5")
	assert.Regexp(t, `^\d+$`, c.say("MEMORY USAGE f"))
	assert.Regexp(t, `^\d+$`, c.say("MEMORY USAGE f SAMPLES 5"))
	assert.Contains(t, c.say("MEMORY STATS"), "keys.count 1")
	assert.Contains(t, c.say("MEMORY DOCTOR"), "INFO memory")
}

func TestScan(t *testing.T) {
	c := defaultClient(t)
	var want []string
	for i := range 500 {
		key := fmt.Sprintf("key:%03d", i)
		want = append(want, key)
		if i%2 == 0 {
			c.say("RL.FIXED " + key + " FOREVER 5")
		} else {
			c.say("RL.SLIDING " + key + " 1h 5")
		}
	}
	walk := func(options string) (keys []string) {
		for cursor, steps := "0", 0; steps == 0 || cursor != "0"; steps++ {
			r := c.value("SCAN " + cursor + options)
			cursor = r.items[0].text
			for _, k := range r.items[1].items {
				keys = append(keys, k.text)
			}
			if steps > 1000 {
				t.Fatal("the scan does not end")
			}
		}
		slices.Sort(keys)
		return slices.Compact(keys)
	}
	assert.Equal(t, want, walk(""))
	assert.Equal(t, want, walk(" COUNT 9223372036854775807"))
	assert.Equal(t, want[100:200], walk(" MATCH key:1?? COUNT 50"))
	assert.Len(t, walk(" type SLIDING"), 250)
	assert.Len(t, walk(" TYPE sliding MATCH *0*"), 50+4*5)
	assert.Empty(t, walk(" TYPE string"))
}

func TestKeysIsBounded(t *testing.T) {
	c := defaultClient(t)
	for i := range maxKeysReply + 1 {
		c.sess.Do(words("RL.FIXED " + decimal(int64(i)) + " FOREVER 5"))
	}
	c.sess.DecidePending()
	c.wire.Truncate(0)
	assert.Equal(t, "-"+string(errTooManyKeys), c.say("KEYS *"))
	assert.Len(t, c.value("KEYS 1*").items, 1+10+100+1000+1) // 1, 1x, 1xx, 1xxx, 10000
}

func TestExplain(t *testing.T) {
	c := defaultClient(t)
	why := func(line string) string { return c.value("RL.EXPLAIN " + line).get("why").text }
	assert.Equal(t, "it needs 1 unit, which leaves 9 of 10", why("RL.TOKENBUCKET k 10/s 10"))
	assert.Equal(t, "a read takes nothing; 10 of 10 are left", why("RL.TOKENBUCKET k 10/s 10 COST 0"))
	assert.Equal(t, "the cost of 11 is above the limit of 10: no wait helps", why("RL.TOKENBUCKET k 10/s 10 COST 11"))
	assert.Equal(t, "it asks for 11 units, and 10 fit", why("RL.TOKENBUCKET k 10/s 10 COST 11 PARTIAL"))
	c.say("RL.TOKENBUCKET k 10/s 10 COST 8")
	assert.Equal(t, "it needs 5 units, but 2 of 10 are left; it fits in 300 ms", why("RL.TOKENBUCKET k 10/s 10 COST 5"))
	assert.Equal(t, "it fits after a delay of 300 ms", why("RL.TOKENBUCKET k 10/s 10 COST 5 MAXWAIT 1s"))
	assert.Equal(t, "0 2 300 800 10", c.say("RL.TOKENBUCKET k 10/s 10 COST 5"), "RL.EXPLAIN must not take units")
	c.say("RL.FIXED f FOREVER 1")
	assert.Equal(t, "it needs 1 unit, but 0 of 1 are left, and units never return by themselves", why(
		"RL.FIXED f FOREVER 1"))
	assert.Equal(t, "this strike reaches a threshold and blocks the key for 300000 ms", why("RL.STRIKE s 1h 1 5m"))
	c.say("RL.STRIKE s 1h 1 5m")
	assert.Equal(t, "too many strikes: the key is blocked for another 300000 ms", why("RL.STRIKE s 1h 1 5m"))
	c.say("RL.BLOCK s 1h")
	assert.Equal(t, "the key is blocked for another 3600000 ms", why("RL.STRIKE s 1h 1 5m"))
	c.say("RL.BLOCK s FOREVER REASON spam")
	assert.Equal(t, "the key is blocked until RL.UNBLOCK lifts it: spam", why("RL.STRIKE s 1h 1 5m"))
	assert.Equal(t, "0.5/s 16",
		strings.Replace(c.value("RL.EXPLAIN CL.THROTTLE x 15 30 60").get("rule").text, "1/2s", "0.5/s", 1))
}

func TestRuleText(t *testing.T) {
	c := defaultClient(t)
	for _, line := range []string{
		"RL.TOKENBUCKET 10/s 100", "RL.LEAKYBUCKET 1/6s 3", "RL.FIXED 1m 5", "RL.FIXED 90s 5 FIRST", "RL.FIXED MONTH 5",
		"RL.FIXED FOREVER 5",
		"RL.SLIDING 500ms 5", "RL.SLIDINGCOUNTER 1h 5", "RL.STRIKE 15m 2 2s 4 5m",
	} {
		name, rule, _ := strings.Cut(line, " ")
		assert.Equal(t, rule, c.value("RL.EXPLAIN "+name+" k "+rule).get("rule").text)
	}
	assert.Equal(t, "7", c.value("RL.EXPLAIN RL.ACQUIRE k 7 1m").get("rule").text)
}

func TestGlob(t *testing.T) {
	for _, test := range []struct {
		pattern, name string
		want          bool
	}{
		{"", "", true}, {"", "a", false}, {"*", "", true}, {"*", "abc", true}, {"a*c", "abc", true},
		{"a*c", "abcd", false}, {"**a**", "xax", true},
		{"?", "", false}, {"?", "x", true}, {"h?llo", "hello", true}, {"h[ae]llo", "hallo", true},
		{"h[ae]llo", "hillo", false},
		{"h[^e]llo", "hello", false}, {"h[^e]llo", "hallo", true}, {"h[a-c]llo", "hbllo", true},
		{"h[c-a]llo", "hbllo", true}, {"h[a-c]llo", "hdllo", false},
		{`h\*llo`, "h*llo", true}, {`h\*llo`, "hello", false}, {`[\]]`, "]", true}, {`[a`, "a", true},
		{"[", "x", false}, {`\`, `\`, true}, {"a*b*c*", "aXbYcZ", true},
		{"key:*:x", "key:1:2:x", true}, {"key:*:x", "key:1:2:y", false}, {"[]", "a", false}, {"[^]", "a", true},
	} {
		assert.Equal(t, test.want, engine.MatchGlob([]byte(test.pattern), []byte(test.name)), "%q %q",
			test.pattern, test.name)
	}
}

// TestGlobIsNotExponential checks that a pattern of many stars is matched quickly. A matcher that backtracks to every
// star would not end.
func TestGlobIsNotExponential(t *testing.T) {
	name := []byte(strings.Repeat("a", 512))
	pattern := []byte(strings.Repeat("*a", 255) + "*b")
	assert.False(t, engine.MatchGlob(pattern, name))
}

func TestCalendarWindows(t *testing.T) {
	for _, test := range []struct{ zone, mode, at, end, next string }{
		{"UTC", "DAY", "2026-11-21T12:00:00Z", "2026-11-22T00:00:00Z", "2026-11-23T00:00:00Z"},
		{"UTC", "DAY", "2026-11-21T00:00:00Z", "2026-11-22T00:00:00Z", "2026-11-23T00:00:00Z"},
		{"UTC", "WEEK", "2026-11-22T23:59:59Z", "2026-11-23T00:00:00Z", "2026-11-30T00:00:00Z"}, // a Sunday
		{"UTC", "WEEK", "2026-11-23T00:00:00Z", "2026-11-30T00:00:00Z", "2026-12-07T00:00:00Z"}, // a Monday
		{"UTC", "MONTH", "2028-02-29T12:00:00Z", "2028-03-01T00:00:00Z", "2028-04-01T00:00:00Z"},
		{"UTC", "MONTH", "2026-12-31T12:00:00Z", "2027-01-01T00:00:00Z", "2027-02-01T00:00:00Z"},
		{"UTC", "YEAR", "2028-02-29T12:00:00Z", "2029-01-01T00:00:00Z", "2030-01-01T00:00:00Z"},
		// A day of 23 hours, and the days around a day of 25 hours.
		{"Europe/Berlin", "DAY", "2026-03-29T00:30:00+01:00", "2026-03-30T00:00:00+02:00", "2026-03-31T00:00:00+02:00"},
		{"Europe/Berlin", "DAY", "2026-10-24T12:00:00+02:00", "2026-10-25T00:00:00+02:00", "2026-10-26T00:00:00+01:00"},
		{"America/New_York", "WEEK", "2026-10-28T12:00:00-04:00", "2026-11-02T00:00:00-05:00",
			"2026-11-09T00:00:00-05:00"},
		{"Asia/Kolkata", "DAY", "2026-11-21T18:30:00Z", "2026-11-23T00:00:00+05:30", "2026-11-24T00:00:00+05:30"},
		// Clocks are put forward at midnight, so the day begins at one o'clock.
		{"America/Sao_Paulo", "DAY", "2018-11-03T12:00:00-03:00", "2018-11-04T01:00:00-02:00",
			"2018-11-05T00:00:00-02:00"},
		// Clocks are put back from one o'clock to midnight, so the day begins with the first midnight.
		{"America/Havana", "DAY", "2026-10-31T12:00:00-04:00", "2026-11-01T00:00:00-04:00",
			"2026-11-02T00:00:00-05:00"},
		{"Asia/Amman", "DAY", "2021-10-28T12:00:00+03:00", "2021-10-29T00:00:00+03:00", "2021-10-30T00:00:00+02:00"},
		{"Atlantic/Azores", "DAY", "2026-10-24T12:00:00Z", "2026-10-25T00:00:00Z", "2026-10-26T00:00:00-01:00"},
		// Samoa skipped the 30th of December 2011.
		{"Pacific/Apia", "DAY", "2011-12-29T12:00:00-10:00", "2011-12-31T00:00:00+14:00", "2012-01-01T00:00:00+14:00"},
	} {
		at, err := time.Parse(time.RFC3339, test.at)
		assert.NoError(t, err)
		location, err := time.LoadLocation(test.zone)
		assert.NoError(t, err)
		w := timezone.WindowAt(at.UnixNano(), limits.WindowMode([]byte(test.mode)), location)
		show := func(ns int64) string { return time.Unix(0, ns).In(location).Format(time.RFC3339) }
		assert.Equal(t, test.end, show(w.Ends.EndNs), "%+v", test)
		assert.Equal(t, test.next, show(w.Ends.NextEndNs), "%+v", test)
		assert.LessOrEqual(t, w.StartNs, at.UnixNano())
		assert.Less(t, at.UnixNano(), w.Ends.EndNs)
		assert.Less(t, w.Ends.EndNs, w.Ends.NextEndNs)
	}
}
