package commands

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// requestsWithID has requests of each command that takes an ID, without it. They all have the key k first.
var requestsWithID = map[string][]string{
	"RL.TOKENBUCKET": {"k 1/m 10", "k 1/m 10 COST 2", "k 2/m 10", "k 1/m 11", "k 1/m 10 PARTIAL",
		"k 1/m 10 MAXWAIT 1s"},
	"RL.LEAKYBUCKET": {"k 1/m 10", "k 1/m 10 COST 2", "k 1/m 9"},
	"RL.FIXED": {"k 1m 10", "k 1m 10 FIRST", "k 1m 9", "k FOREVER 10", "k DAY 10", "k WEEK 10",
		"k DAY 10 TZ Asia/Tokyo", "k 1m 10 COST 3", "k 1m 10 PARTIAL"},
	"RL.SLIDING":        {"k 1m 10", "k 2m 10", "k 1m 10 COST 2", "k 1m 10 PARTIAL"},
	"RL.SLIDINGCOUNTER": {"k 1m 10", "k 1m 11", "k 1m 10 COST 2"},
	"RL.ACQUIRE": {"k 3 1m HOLDER a", "k 3 1m HOLDER b", "k 3 2m HOLDER a", "k 4 1m HOLDER a",
		"k 3 1m HOLDER a COST 2", "k 3 1m"},
	"RL.STRIKE": {"k 15m 4 2s", "k 15m 4 3s", "k 15m 4 2s 6 5s", "k 15m 4 2s COST 2", "k 15m 4 2s EXTEND",
		"k 15m 4 2s ATTEMPTS"},
	"RL.CHECK": {"p k", "q k", "p k COST 2", "p k PARTIAL", "p k PRIORITY high", "p k q k", "p k q other", "q k p k",
		"p other q k", "p other q k COST 2", "locks k"},
	"RL.RELEASE": {"k a", "k b"},
	"RL.RENEW":   {"k a 1m", "k a 2m", "k b 1m"},
	"RL.REFUND":  {"k 1", "k 2"},
	"RL.RESET":   {"k"},
	"RL.FORGIVE": {"locks k", "locks2 k", "locks k locks2 k", "locks other locks2 k"},
	"RL.BLOCK":   {"k 1h", "k 2h", "k FOREVER", "k 1h REASON abuse", "k 1h EVERYWHERE", "k 1h GT"},
	"RL.UNBLOCK": {"k"},
}

// TestAnIDIsBoundToItsRequest checks every request with an ID against every other: the same again gets the first
// answer, and any other gets an error. Neither changes anything. The commands are those whose syntax has an ID.
func TestAnIDIsBoundToItsRequest(t *testing.T) {
	srv := newTestServer(t, Config{EnableDebug: true})
	c := srv.client(t)
	for _, define := range []string{"p LIMIT FIXED FOREVER 10", "q LIMIT FIXED FOREVER 10",
		"locks LIMIT STRIKE 15m 4 2s", "locks2 LIMIT STRIKE 15m 4 2s"} {
		require.Equal(t, "1", c.say("RL.POLICY SET "+define))
	}
	var requests []string
	for _, cmd := range srv.table.all {
		if !strings.Contains(cmd.syntax, "[ID token]") {
			continue
		}
		require.NotEmpty(t, requestsWithID[cmd.name], "%s takes an ID and has no request in this test", cmd.name)
		for _, args := range requestsWithID[cmd.name] {
			requests = append(requests, cmd.name+" "+args+" ID x")
		}
	}
	for _, first := range requests {
		for _, second := range requests {
			c.say("FLUSHALL")
			answer := c.say(first)
			require.NotRegexp(t, "^-[A-Z]", answer, first)
			before := srv.lim.Table.StateHash(srv.lim.Now())
			again := c.say(second)
			require.Equal(t, before, srv.lim.Table.StateHash(srv.lim.Now()), "%s, then %s", first, second)
			if first == second {
				require.Equal(t, answer, again, first)
				continue
			}
			require.Regexp(t, "^-IDUSED the ID 'x' was used .*for "+strings.Fields(first)[0]+"[ ,]", again,
				"%s, then %s", first, second)
			require.Equal(t, answer, c.say(first), "%s, after %s", first, second)
			c.say("FLUSHALL")
			c.say("MULTI")
			c.say(first)
			c.say(second)
			require.Contains(t, c.say("EXEC"), "-IDUSED", "%s with %s in MULTI", first, second)
			require.Equal(t, before, srv.lim.Table.StateHash(srv.lim.Now()), "%s with %s in MULTI", first, second)
		}
	}
	t.Log(len(requests), "requests,", len(requests)*len(requests), "pairs")
}

// TestAnIDInOtherWords checks what strangers found: an ID that came twice with other words was answered with the
// numbers of the first request under the name of the second.
func TestAnIDInOtherWords(t *testing.T) {
	c := defaultClient(t)
	used := func(line, why string) {
		t.Helper()
		const then = ": repeat that request as it was, or send this one with an ID of its own"
		require.Equal(t, "-IDUSED the ID "+why+then, c.say(line))
	}
	c.say("RL.POLICY SET burst LIMIT FIXED FOREVER 10")
	c.say("RL.POLICY SET daily LIMIT FIXED FOREVER 2")
	c.say("RL.POLICY SET lock LIMIT STRIKE 15m 4 2s")
	require.Equal(t, "1 9 0 -1 10 burst", c.say("RL.CHECK burst user:42 ID r1"))
	used("RL.CHECK daily user:42 ID r1", "'r1' was used for RL.CHECK with another policy or key, nothing was done")
	require.Equal(t, "1 2 0 0 2 daily", c.say("RL.CHECK daily user:42 COST 0"))

	require.Equal(t, "1 2 0 -1 10", c.say("RL.FIXED q FOREVER 10 COST 8 ID x"))
	used("RL.REFUND q 8 ID x", "'x' was used for RL.FIXED, nothing was done")
	require.Equal(t, "10", c.say("RL.REFUND q 8 ID y"))
	used("RL.REFUND q 7 ID y", "'y' was used for RL.REFUND with another n, nothing was done")

	c.say("RL.CHECK lock u ID a")
	used("RL.FORGIVE lock u ID a", "'a' was used for RL.CHECK, nothing was done")
	require.Equal(t, "1", c.say("RL.FORGIVE lock u ID b"))

	require.Equal(t, "1 99 0 -1 100", c.say("RL.FIXED w FOREVER 100 COST 1 ID y"))
	used("RL.FIXED w FOREVER 100 COST 90 ID y", "'y' was used for RL.FIXED with another cost, nothing was done")
	used("RL.FIXED w FOREVER 200 COST 90 ID y",
		"'y' was used for RL.FIXED with another limit and another cost, nothing was done")
	used("RL.FIXED w FOREVER 100 COST 1 PARTIAL ID y",
		"'y' was used for RL.FIXED with other options, nothing was done")
	require.Equal(t, "1 99 0 -1 100", c.say("RL.FIXED w FOREVER 100 COST 0"))
	require.Contains(t, c.say("RL.EXPLAIN RL.FIXED w FOREVER 100 COST 1 ID y"), "RL.EXPLAIN accepts no ID")

	c.say("MULTI")
	c.say("RL.CHECK burst m ID z")
	c.say("RL.CHECK daily m ID z")
	require.Contains(t, c.say("EXEC"), "1 9 0 -1 10 burst -IDUSED the ID 'z' was used for RL.CHECK")
	require.Equal(t, "1 2 0 0 2 daily", c.say("RL.CHECK daily m COST 0"))

	require.Equal(t, "OK", c.say("RL.BLOCK b 1h REASON abuse ID n"))
	used("RL.BLOCK b 2h REASON spam ID n",
		"'n' was used for RL.BLOCK with another reason and another duration, nothing was done")

	require.Equal(t, "1 0 0 -1 1", c.say("RL.FIXED one FOREVER 1 ID r"))
	require.Equal(t, "1 0 0 -1 1", c.say("RL.FIXED two FOREVER 1 ID r"), "an ID belongs to a key")
	require.Equal(t, "-IDUSED 1 of 3 are done, 2 are not ('one' 'two'); the first because: the ID 'r' was used on "+
		"'one' for RL.FIXED, nothing was done on 'one': repeat that request as it was, or send this one with an ID "+
		"of its own", c.say("RL.RESET one two three ID r"))
}

// TestARequestWithoutEffectClaimsNoID checks that errors and looks leave an ID free, and that strikes do not.
func TestARequestWithoutEffectClaimsNoID(t *testing.T) {
	c := defaultClient(t)
	require.Equal(t, "1 5 0 0 5", c.say("RL.FIXED k FOREVER 5 COST 0 ID a"))
	require.Equal(t, "1 4 0 -1 5", c.say("RL.FIXED k FOREVER 5 ID a"))
	require.Contains(t, c.say("RL.SLIDING k 1m 5 ID b"), "-WRONGTYPE")
	require.Contains(t, c.say("RL.CHECK p k ID b"), "-ERR there is no policy")
	c.say("RL.POLICY SET p LIMIT STRIKE 15m 2 1m LIMIT FIXED FOREVER 9")
	require.Regexp(t, "^1 1 ", c.say("RL.CHECK p k ID b"))

	for _, strike := range []string{"RL.STRIKE s 15m 1 1m ID c", "RL.CHECK p k ID c"} {
		denied := c.say(strike)
		require.Regexp(t, "^0 0 60000 ", denied)
		require.Equal(t, denied, c.say(strike), "a denial that counted a strike is remembered")
	}
	require.Contains(t, c.say("RL.INSPECT policy|p|1|k"), "used 2 ", "the attempt and the strike counted once each")
}

// TestRepetitions checks what each command says and does when it is repeated, without an ID or with the same one.
func TestRepetitions(t *testing.T) {
	for name, lines := range map[string][][2]string{
		"a holder acquires again: a renewal": {
			{"RL.ACQUIRE k 3 1m HOLDER a COST 2", "1 1 0 60000 3 a"},
			{"RL.ACQUIRE k 3 2m HOLDER a COST 2", "1 1 0 120000 3 a"},
			{"RL.ACQUIRE k 4 1m HOLDER a COST 2", "1 2 0 60000 4 a"},
			{"RL.ACQUIRE k 3 1m HOLDER a COST 3", "-ERR COST must be 2, which is what this holder holds of the " +
				"key, not 3; nothing was changed: RL.RELEASE it first, or use another HOLDER"},
			{"RL.ACQUIRE k 3 9m HOLDER a COST 1 ID x", "-ERR COST must be 2, which is what this holder holds of the " +
				"key, not 1; nothing was changed: RL.RELEASE it first, or use another HOLDER"},
			{"RL.ACQUIRE k 3 9m HOLDER a COST 0", "1 1 0 60000 3 a"},
		},
		"a slot is released twice": {
			{"RL.ACQUIRE k 3 1m HOLDER a", "1 2 0 60000 3 a"},
			{"RL.RELEASE k a ID r", "1"}, {"RL.RELEASE k a ID r", "1"}, {"RL.RELEASE k a", "0"},
			{"RL.ACQUIRE k 3 1m HOLDER a", "1 2 0 60000 3 a"},
			{"RL.RELEASE k a ID r", "1"}, {"RL.ACQUIRE k 3 1m HOLDER b", "1 1 0 60000 3 b"},
		},
		"a lease is renewed twice": {
			{"RL.ACQUIRE k 3 1m HOLDER a", "1 2 0 60000 3 a"},
			{"RL.RENEW k a 2m", "1"}, {"RL.RENEW k a 2m", "1"}, {"PTTL k", "120000"},
			{"RL.RENEW k a 5m ID r", "1"}, {"DEBUG CLOCK ADVANCE 1000", "OK"},
			{"RL.RENEW k a 5m ID r", "1"}, {"PTTL k", "299000"},
		},
		"the id of a hold is no ID of a check": {
			{"RL.CHECK p k ID h", "1 9 0 -1 10 p"}, {"RL.RESERVE p k 4 1m ID h", "1 5 0 -1 10 h"},
			{"RL.CHECK p k ID h", "1 9 0 -1 10 p"}, {"RL.COMMIT h 4", "5"},
		},
		"a block is set twice: the later one counts": {
			{"RL.BLOCK k 1h REASON a", "OK"}, {"RL.BLOCK k 1m REASON b", "OK"},
			{"RL.FIXED k 1h 5", "0 0 60000 60000 5"},
			{"RL.BLOCK k 1h ID b", "OK"}, {"RL.UNBLOCK k", "1"},
			{"RL.BLOCK k 1h ID b", "OK"}, {"RL.FIXED k FOREVER 5", "1 4 0 -1 5"},
		},
		"a block is lifted twice": {
			{"RL.BLOCK k 1h", "OK"}, {"RL.UNBLOCK k ID u", "1"}, {"RL.UNBLOCK k", "0"}, {"RL.BLOCK k 1h", "OK"},
			{"RL.UNBLOCK k ID u", "1"}, {"RL.FIXED k FOREVER 5", "0 0 3600000 3600000 5"},
		},
		"strikes are forgiven twice": {
			{"RL.CHECK lock k", "1 1 0 900000 2 lock"}, {"RL.FORGIVE lock k ID f", "1"}, {"RL.FORGIVE lock k", "0"},
			{"RL.CHECK lock k", "1 1 0 900000 2 lock"}, {"RL.FORGIVE lock k ID f", "1"},
			{"RL.CHECK lock k COST 0", "1 1 0 900000 2 lock"},
		},
		"keys are reset twice": {
			{"RL.FIXED k FOREVER 10", "1 9 0 -1 10"}, {"RL.RESET k l ID r", "1"}, {"RL.RESET k l ID r", "1"},
			{"RL.FIXED k FOREVER 10", "1 9 0 -1 10"}, {"RL.FIXED m FOREVER 10", "1 9 0 -1 10"},
			{"RL.RESET k m ID r", "2"}, {"EXISTS k m", "1"},
		},
	} {
		c := defaultClient(t)
		c.say("RL.POLICY SET p LIMIT FIXED FOREVER 10")
		c.say("RL.POLICY SET lock LIMIT STRIKE 15m 2 1h")
		for _, line := range lines {
			require.Equal(t, line[1], c.say(line[0]), "%s: %s", name, line[0])
		}
	}
}
