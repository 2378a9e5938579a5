package commands

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestChangedAlgorithm checks that a key is idle for every command once its limit has another algorithm, also when the
// algorithm returns before the next check.
func TestChangedAlgorithm(t *testing.T) {
	for _, back := range []bool{false, true} {
		steps := []step{
			{"", "RL.POLICY SET p LIMIT FIXED 1h 5 LIMIT STRIKE 1h 9 1h LAYOUT rl:{key}:{policy}", "1"},
			{"", "RL.CHECK p u COST 5", "1 0 0 3600000 5 p"},
			{"", "EXISTS policy|p|0|u policy|p|1|u rl:u:p", "3"},
			{"", "RL.POLICY SET p LIMIT SLIDING 1h 5 LIMIT FIXED 1h 9 LAYOUT rl:{key}:{policy}", "2"},
		}
		if back {
			steps = append(steps, step{"",
				"RL.POLICY SET p LIMIT FIXED 1h 5 LIMIT STRIKE 1h 9 1h LAYOUT rl:{key}:{policy}", "3"})
		}
		reads := []step{
			{"", "DBSIZE", "0"},
			{"", "KEYS *", ""},
			{"", "SCAN 0 COUNT 1000", "0 "},
			{"", "RANDOMKEY", "nil"},
			{"", "EXISTS policy|p|0|u policy|p|1|u rl:u:p", "0"},
			{"", "TYPE policy|p|0|u", "none"},
			{"", "TTL policy|p|0|u", "-2"},
			{"", "PTTL rl:u:p", "-2"},
			{"", "GET rl:u:p", "nil"},
			{"", "HGETALL rl:u:p", ""},
			{"", "RL.INSPECT policy|p|1|u", ""},
			{"", "MEMORY USAGE policy|p|0|u", "nil"},
			{"", "OBJECT ENCODING policy|p|0|u", "nil"},
		}
		steps = append(append(steps, reads...), []step{
			{"", "RL.FORGIVE p u", "0"},
			{"", "RL.REFUND policy|p|0|u 5", "-1"},
			{"", "RL.RESET policy|p|0|u policy|p|1|u", "0"},
			{"", "DEL rl:u:p", "0"},
			{"", "UNLINK policy|p|0|u", "0"},
		}...)
		runSteps(t, append(append(steps, reads...), step{"", "RL.CHECK p u COST 5", "1 0 0 3600000 5 p"}))
	}
}

// TestChangedElsewhere checks definitions that change in ways of which TestChangedDefinitions has none.
func TestChangedElsewhere(t *testing.T) {
	for name, steps := range map[string][]step{
		"names of a layout": {
			{"", "RL.POLICY SET p LIMIT FIXED 1h 10 LAYOUT rl:{key}", "1"},
			{"", "RL.CHECK p u COST 8", "1 2 0 3600000 10 p"},
			{"", "RL.POLICY SET p LIMIT FIXED 1h 100 LAYOUT rl:{key}", "2"},
			{"", "GET rl:u", "92 of 100 left, as if never used in 3600000 ms"},
			{"", "HMGET rl:u limit remaining used rule", "100 92 8 1h 100"},
			{"", "RL.POLICY SET p LIMIT FIXED 2h 50 FIRST LAYOUT api:{key}", "3"},
			{"60000", "KEYS *", "api:u"},
			{"", "EXISTS rl:u", "0"},
			{"", "HMGET api:u limit remaining used rule", "50 42 8 2h 50 FIRST"},
			{"", "PTTL api:u", "7140000"},
		},
		"a hold, and an override with the same limit": {
			{"", "RL.POLICY SET p LIMIT FIXED FOREVER 10", "1"},
			{"", "RL.RESERVE p u 6 1m ID h", "1 4 0 -1 10 h"},
			{"", "RL.POLICY OVERRIDE p u LIMIT FIXED FOREVER 10", "2"},
			{"", "HMGET policy|p|0|u used holders", "6 1"},
			{"60000", "EXISTS policy|p|0|u", "0"},
			{"", "RL.CHECK p u COST 10", "1 0 0 -1 10 p"},
		},
		"slots": {
			{"", "RL.ACQUIRE a 3 1m HOLDER x COST 2", "1 1 0 60000 3 x"},
			{"", "RL.ACQUIRE a 1 1s HOLDER y", "0 0 60000 60000 1 y"},
			{"", "RL.ACQUIRE a 4 1s HOLDER y", "1 1 0 60000 4 y"},
			{"1000", "RL.ACQUIRE a 4 1s HOLDER z COST 0", "1 2 0 59000 4 z"},
		},
	} {
		t.Run(name, func(t *testing.T) { runSteps(t, steps) })
	}
}

// TestChangesThatAreForgotten checks a key that is idle through more changes than a policy remembers: the definition in
// force counts from the last change that is forgotten, not from the next decision.
func TestChangesThatAreForgotten(t *testing.T) {
	c := defaultClient(t)
	c.say("RL.POLICY SET p LIMIT TOKENBUCKET 2/s 100")
	c.say("RL.POLICY OVERRIDE p u LIMIT TOKENBUCKET 1/s 100")
	require.Equal(t, "1 0 0 100000 100 p", c.say("RL.CHECK p u COST 100"))
	c.say("DEBUG CLOCK ADVANCE 10000")
	require.NotContains(t, c.say("RL.POLICY OVERRIDE p u NONE"), "-")
	for i := range 129 { // 128 definitions end, of an override that u does not have
		require.NotContains(t, c.say(fmt.Sprint("RL.POLICY OVERRIDE p vip LIMIT TOKENBUCKET 1/s ", 1+i)), "-")
	}
	c.say("DEBUG CLOCK ADVANCE 20000")
	require.Equal(t, "1 50 0 25000 100 p", c.say("RL.CHECK p u COST 0"))
	require.Equal(t, "1 0 0 50000 100 p", c.say("RL.CHECK p u COST 50"))
}
