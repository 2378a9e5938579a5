package commands

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limits"
	"github.com/weir-project/weir/server/service"
	"github.com/weir-project/weir/server/timezone"
)

// TestBadPoliciesChangeNothing checks that each invalid command states the accepted values, and leaves the policy
// unchanged.
func TestBadPoliciesChangeNothing(t *testing.T) {
	c := defaultClient(t)
	require.Equal(t, "1", c.say("RL.POLICY SET p LIMIT FIXED 1m 5"))
	before := c.say("RL.POLICY GET p")
	for send, want := range map[string]string{
		"RL.POLICY SET p FIXED 1m 5":                               "policy must begin with LIMIT",
		"RL.POLICY SET p LIMIT FIXED 1m 0":                         "max must be a whole number from 1",
		"RL.POLICY SET p LIMIT FIXED 1m 5 TZ UTC":                  "TZ goes with a window of DAY",
		"RL.POLICY SET p LIMIT FIXED DAY 5 FIRST":                  "FIRST goes with a window of a duration",
		"RL.POLICY SET p LIMIT FIXED 1m 5 LIMIT ACQUIRE 5 1m":      "LIMIT must be TOKENBUCKET rate burst",
		"RL.POLICY SET p LIMIT FIXED 1m 5 RETRYAFTER":              "RETRYAFTER needs a value",
		"RL.POLICY SET p LIMIT FIXED 1m 5 RETRYAFTER 400d":         "RETRYAFTER must be at most 366 days",
		"RL.POLICY SET p LIMIT FIXED 1m 5 RESERVED 20":             "RESERVED must be from 0.1% to 99.9%",
		"RL.POLICY SET p LIMIT FIXED 1m 5 SHADOW SHADOW":           "SHADOW is given twice",
		"RL.POLICY SET p LIMIT FIXED 1m 5 KEEP usage RESET":        "KEEP and RESET exclude each other",
		"RL.POLICY SET p LIMIT FIXED 1m 5 UNLIMITED":               "option must be LIMIT",
		"RL.POLICY SET p LIMIT LEAKYBUCKET 1/s 5 MAXWAIT 1s":       "limit must end with the capacity",
		"RL.POLICY SET p LIMIT SLIDING 1m 1000001":                 "max must be a whole number from 1 to 1000000",
		"RL.POLICY SET p LIMIT STRIKE 1m 3":                        "a limit is written STRIKE window threshold penalty",
		"RL.POLICY SET p LIMIT STRIKE 1m 3 2s 2 5s":                "threshold must be above the one before it",
		"RL.POLICY SET p LIMIT STRIKE 1m 3 2s 4":                   "threshold 4 needs a penalty",
		"RL.POLICY SET p LIMIT STRIKE 1m 3 2s COST 1":              "limit must end with a penalty",
		"RL.POLICY SET p|q LIMIT FIXED 1m 5":                       "letters, digits and -_.:",
		"RL.POLICY SET cost LIMIT FIXED 1m 5":                      "must not be an option of RL.CHECK",
		"RL.POLICY SET p" + strings.Repeat(" LIMIT FIXED 1m 5", 9): "a policy has at most 8 limits",
		"RL.POLICY SHADOW p maybe":                                 "SHADOW must be ON or OFF",
		"RL.POLICY SHADOW q ON":                                    "there is no policy 'q'",
		"RL.POLICY GET q":                                          "there is no policy 'q'",
		"RL.POLICY OVERRIDE p k UNLIMITED TTL 0":                   "TTL must be at least 1ms",
		"RL.POLICY OVERRIDE p k UNLIMITED FOR 1h":                  "option must be TTL duration",
		"RL.POLICY OVERRIDE p k UNLIMITED TTL":                     "option must be TTL duration",
		"RL.POLICY OVERRIDE p k UNLIMITED TTL 1h 2h":               "option must be TTL duration",
		"RL.POLICY OVERRIDE p k FIXED 1m 5":                        "override must be LIMIT",
		"RL.CHECK q k":                                             "there is no policy 'q'",
		"RL.CHECK p k q k":                                         "there is no policy 'q'",
		"RL.CHECK p k p":                                           "policy 'p' needs a key",
		"RL.CHECK p k p k":                                         "policy 'p' is named twice for the key 'k'",
		"RL.CHECK p k p j p k":                                     "policy 'p' is named twice for the key 'k'",
		"RL.CHECK p k PRIORITY low":                                "PRIORITY must be high or normal",
		"RL.CHECK p k COST 9007199254740993": "COST must be a whole number from 0 to " +
			"9007199254740992",
		"RL.CHECK p policy|p|0|k":         "keys that begin with 'policy|'",
		"RL.TOKENBUCKET policy|p|0|k 1 1": "keys that begin with 'policy|'",
		"RL.BLOCK policy|p|0|k 1h":        "keys that begin with 'policy|'",
		"RL.CHECK" + manyPairs(17):        "a check names at most 16 policies",
		"RL.EXPLAIN RL.CHECK q k":         "there is no policy 'q'",
	} {
		require.Contains(t, c.say(send), want, send)
	}
	require.Equal(t, before, c.say("RL.POLICY GET p"))
	require.Equal(t, "", c.say("KEYS *"))
}

func manyPairs(n int) (text string) {
	for i := range n {
		text += " p k" + string(rune('a'+i))
	}
	return text
}

// TestZonesAreAsTheCalendarSays checks that the window boundaries a policy computes from its stored zone changes
// match Go's time package.
func TestZonesAreAsTheCalendarSays(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, name := range []string{
		"UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "America/Santiago",
		"Africa/Cairo", "Asia/Beirut", "Pacific/Apia", "America/Asuncion",
	} {
		zone, err := timezone.Tables.Get([]byte(name))
		require.NoError(t, err)
		require.LessOrEqual(t, len(zone.Changes), engine.MaxZoneChanges)
		location, err := time.LoadLocation(name)
		require.NoError(t, err)
		for range 3000 {
			wall := time.Date(2021, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano() + r.Int64N(70*365*24*3600)*1e9 + r.Int64N(
				1e9)
			mode := engine.Day + engine.WindowMode(r.IntN(4))
			require.Equal(t, timezone.WindowAt(wall, mode, location).Ends, *zone.Window(wall, mode), "%s %s %s", name,
				limits.WindowWords[mode], time.Unix(0, wall).UTC())
		}
	}
}

// TestExplainOfAChecks checks that the explanation names the limit that binds.
func TestExplainOfAChecks(t *testing.T) {
	c := defaultClient(t)
	c.say("RL.POLICY SET org LIMIT FIXED 1h 10 FIRST")
	c.say("RL.POLICY SET user LIMIT TOKENBUCKET 1/s 5 LIMIT FIXED 1d 60 FIRST")
	c.say("RL.CHECK org acme user 7 COST 5")
	require.Contains(t, c.say("RL.EXPLAIN RL.CHECK org acme user 7 COST 2"), "policy|user|0|7")
	require.Contains(t, c.say("RL.EXPLAIN RL.CHECK org acme user 7 COST 2"),
		"it needs 2 units, but 0 of 5 are left; it fits in 2000 ms")
	require.Contains(t, c.say("RL.EXPLAIN RL.CHECK org acme user 7 COST 7"), "above the limit of 5: no wait helps")
	require.Contains(t, c.say("HGETALL policy|user|0|7"), "algorithm tokenbucket rule 1/s 5 limit 5 used 5")
	require.Equal(t, c.say("RL.INSPECT policy|user|1|7"), c.say("HGETALL policy|user|1|7"))
	c.say("RL.POLICY SET half LIMIT FIXED FOREVER 4 RESERVED 50%")
	c.say("RL.CHECK half k COST 2")
	require.Contains(t, c.say("RL.EXPLAIN RL.CHECK half k"), "a part of the limit is reserved for PRIORITY high")
	require.NotContains(t, c.say("RL.EXPLAIN RL.CHECK half k PRIORITY high"), "is reserved for")
	c.say("RL.POLICY DISABLE user")
	require.Contains(t, c.say("RL.EXPLAIN RL.CHECK user 7"), "the policy is disabled")
	c.say("RL.BLOCK acme 1h")
	require.Contains(t, c.say("RL.EXPLAIN RL.CHECK user 7 org acme"), "the key is blocked")
}

// TestChecksInATransaction checks that a transaction can change a policy and check it in one step.
func TestChecksInATransaction(t *testing.T) {
	c := defaultClient(t)
	c.say("MULTI")
	require.Equal(t, "QUEUED", c.say("RL.POLICY SET p LIMIT FIXED FOREVER 2"))
	require.Equal(t, "QUEUED", c.say("RL.CHECK p k"))
	require.Equal(t, "QUEUED", c.say("RL.POLICY SET p LIMIT FIXED FOREVER 1"))
	require.Equal(t, "QUEUED", c.say("RL.CHECK p k"))
	require.Equal(t, "1 1 1 0 -1 2 p 2 0 0 -1 -1 1 p", c.say("EXEC"))
}

// TestStrikesAsAPolicy checks that a strike limit of a policy is read, written back and explained, and cannot be
// reserved.
func TestStrikesAsAPolicy(t *testing.T) {
	c := defaultClient(t)
	require.Equal(t, "1", c.say("RL.POLICY SET lockout LIMIT STRIKE 15m 2 2s 3 15m"))
	require.Contains(t, c.say("RL.POLICY GET lockout"), "STRIKE 15m 2 2s 3 15m")
	require.Equal(t, "1 2 0 900000 3 lockout", c.say("RL.CHECK lockout 42"))
	require.Contains(t, c.say("RL.EXPLAIN RL.CHECK lockout 42"),
		"this strike reaches a threshold and blocks the key for 2000 ms")
	require.Equal(t, "-"+string(service.ErrStrikesHeld), c.say("RL.RESERVE lockout 42 1 1m ID h"))
	require.Equal(t, "0 1 2000 900000 3 lockout", c.say("RL.CHECK lockout 42"))
	require.Contains(t, c.say("RL.EXPLAIN RL.CHECK lockout 42"), "too many strikes: the key is blocked")
	require.Contains(t, c.say("RL.POLICY GET lockout"), "admitted 1 denied 1")
	require.Contains(t, c.say("RL.INSPECT policy|lockout|0|42"), "rule 15m 2 2s 3 15m")
}

// TestOwnersOfPolicies checks that owners are set, kept, shown, listed and removed.
func TestOwnersOfPolicies(t *testing.T) {
	c := defaultClient(t)
	require.Equal(t, "1", c.say("RL.POLICY SET p LIMIT FIXED 1m 5 OWNER team-a SHADOW"))
	require.Equal(t, "1", c.say("RL.POLICY SET q LIMIT FIXED 1m 5"))
	require.Equal(t, "2", c.say("RL.POLICY SET p LIMIT FIXED 1m 6"))
	require.Contains(t, c.say("RL.POLICY GET p"), "shadowed 0 owner team-a")
	require.Equal(t, "p q", c.say("RL.POLICY LIST"))
	require.Equal(t, "p", c.say("RL.POLICY LIST OWNER team-a"))
	require.Equal(t, "q", c.say("RL.POLICY LIST OWNER none"))
	require.Equal(t, "", c.say("RL.POLICY LIST OWNER team-b"))
	require.Equal(t, "3", c.say("RL.POLICY SET p LIMIT FIXED 1m 6 OWNER NONE"))
	require.Equal(t, "p q", c.say("RL.POLICY LIST OWNER NONE"))
	for send, want := range map[string]string{
		"RL.POLICY SET p LIMIT FIXED 1m 5 OWNER": "OWNER needs a value, like OWNER team-a",
		"RL.POLICY SET p LIMIT FIXED 1m 5 OWNER a/b": "OWNER must be 1 to 64 letters, digits and -_.:, or " +
			"NONE, not 'a/b'",
		"RL.POLICY SET p LIMIT FIXED 1m 5 IF -1": "IF must be a whole number from 0",
		"RL.POLICY LIST TEAM a":                  "option must be OWNER owner, not 'TEAM'",
		"RL.POLICY LIST OWNER":                   "option must be OWNER owner, not 'OWNER'",
		"RL.POLICY LIST OWNER a/b":               "OWNER must be 1 to 64 letters",
		"RL.POLICY DEL p IF":                     "option must be IF version, at the end, not 'IF'",
		"RL.POLICY DEL p IF x":                   "IF must be a whole number from 0",
		"RL.POLICY OVERRIDE p k NONE TTL 1s": "option must be TTL duration or IF version, at the " +
			"end, not 'TTL'",
		"RL.POLICY OVERRIDE p k UNLIMITED IF 3 TTL 1s": "option must be TTL duration or IF version, at the " +
			"end, not 'IF'",
	} {
		require.Contains(t, c.say(send), want, send)
	}
	require.Contains(t, c.say("RL.POLICY GET p"), "version 3")
}

// TestConditionalChanges checks that a change which expects another version changes nothing. In a transaction the other
// commands change nothing either.
func TestConditionalChanges(t *testing.T) {
	c := defaultClient(t)
	require.Equal(t, "-"+string(service.ErrPolicyChanged), c.say("RL.POLICY SET p LIMIT FIXED FOREVER 5 IF 1"))
	require.Equal(t, "1", c.say("RL.POLICY SET p LIMIT FIXED FOREVER 5 IF 0"))
	require.Equal(t, "2", c.say("RL.POLICY OVERRIDE p k UNLIMITED TTL 1h IF 1"))
	require.Equal(t, "3", c.say("RL.POLICY OVERRIDE p k NONE IF 2"))
	require.Equal(t, "-"+string(service.ErrPolicyChanged), c.say("RL.POLICY OVERRIDE p k UNLIMITED IF 2"))
	require.Equal(t, "-"+string(service.ErrPolicyChanged), c.say("RL.POLICY DEL p IF 2"))
	c.say("MULTI")
	c.say("RL.CHECK p k")
	c.say("RL.POLICY SET q LIMIT FIXED FOREVER 5")
	c.say("RL.POLICY DEL p IF 2")
	require.Equal(t, "-"+string(service.ErrAbandoned)+" -"+string(service.ErrAbandoned)+" -"+
		string(service.ErrPolicyChanged), c.say("EXEC"))
	require.Equal(t, "p", c.say("RL.POLICY LIST"))
	require.Equal(t, "1 4 0 -1 5 p", c.say("RL.CHECK p k"))
	require.Equal(t, "1", c.say("RL.POLICY DEL p IF 3"))
}
