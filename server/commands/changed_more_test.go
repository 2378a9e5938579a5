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
		"a lock that is forgiven": {
			{"", "RL.POLICY SET p LIMIT STRIKE 15m 3 1h", "1"},
			{"", "RL.CHECK p u COST 3", "0 0 3600000 3600000 3 p"},
			{"", "RL.POLICY SET p LIMIT STRIKE 15m 30 1m", "2"},
			{"60000", "HMGET policy|p|0|u penalty_ms limit used", "3540000 30 3"},
			{"", "RL.FORGIVE p u", "1"},
			{"", "RL.CHECK p u", "1 29 0 900000 30 p"},
		},
		"an override for a time": {
			{"", "RL.POLICY SET p LIMIT TOKENBUCKET 1/h 10", "1"},
			{"", "RL.POLICY OVERRIDE p u LIMIT TOKENBUCKET 1/s 10 TTL 5s", "2"},
			{"", "RL.CHECK p u COST 10", "1 0 0 10000 10 p"},
			{"5000", "PTTL policy|p|0|u", "18000000"},
			{"3600000", "RL.CHECK p u COST 7", "0 6 3600000 14400000 10 p"},
			{"", "RL.CHECK p u COST 6", "1 0 0 36000000 10 p"},
		},
		"no limit for a time": {
			{"", "RL.POLICY SET p LIMIT FIXED 1h 10 FIRST", "1"},
			{"", "RL.CHECK p u COST 10", "1 0 0 3600000 10 p"},
			{"", "RL.POLICY OVERRIDE p u UNLIMITED TTL 10s", "2"},
			{"", "RL.CHECK p u COST 1000", "1 9007199254740992 0 0 9007199254740992 p"},
			{"10000", "RL.CHECK p u", "0 0 3590000 3590000 10 p"},
		},
		"an override for a time, for a key that is denied in it": {
			{"", "RL.POLICY SET p LIMIT SLIDING 1h 10", "1"},
			{"", "RL.CHECK p u COST 10", "1 0 0 3600000 10 p"},
			{"", "RL.POLICY OVERRIDE p u* LIMIT SLIDING 1d 10 TTL 1m", "2"},
			{"1000", "RL.CHECK p u", "0 0 86399000 86399000 10 p"},
			{"59000", "RL.CHECK p u", "0 0 3540000 3540000 10 p"},
			{"3540000", "RL.CHECK p u COST 10", "1 0 0 3600000 10 p"},
		},
		"a disabled policy": {
			{"", "RL.POLICY SET p LIMIT SLIDING 1m 10", "1"},
			{"", "RL.CHECK p u COST 10", "1 0 0 60000 10 p"},
			{"", "RL.POLICY DISABLE p", "2"},
			{"", "RL.CHECK p u COST 5", "1 10 0 0 10 p"},
			{"", "RL.POLICY SET p LIMIT SLIDING 1h 10 DISABLED", "3"},
			{"600000", "RL.POLICY ENABLE p", "4"},
			{"", "RL.CHECK p u", "0 0 3000000 3000000 10 p"},
		},
		"a shadow": {
			{"", "RL.POLICY SET p LIMIT SLIDING 1m 10 SHADOW", "1"},
			{"", "RL.CHECK p u COST 10", "1 0 0 60000 10 p"},
			{"", "RL.POLICY SET p LIMIT SLIDING 1h 10 SHADOW", "2"},
			{"100000", "RL.CHECK p u", "1 0 0 3500000 10 p"},
			{"", "RL.POLICY SHADOW p OFF", "3"},
			{"", "RL.CHECK p u", "0 0 3500000 3500000 10 p"},
		},
		"deleted and made again": {
			{"", "RL.POLICY SET p LIMIT FIXED FOREVER 10", "1"},
			{"", "RL.CHECK p u COST 10", "1 0 0 -1 10 p"},
			{"", "RL.POLICY SET p LIMIT FIXED FOREVER 5", "2"},
			{"", "RL.POLICY DEL p", "1"},
			{"", "RL.POLICY SET p LIMIT FIXED FOREVER 10", "1"},
			{"", "EXISTS policy|p|0|u", "0"},
			{"", "RL.CHECK p u COST 4", "1 6 0 -1 10 p"},
			{"", "RL.POLICY SET p LIMIT FIXED FOREVER 6", "2"},
			{"", "RL.CHECK p u COST 2", "1 0 0 -1 6 p"},
		},
		"with RESET": {
			{"", "RL.POLICY SET p LIMIT FIXED FOREVER 10", "1"},
			{"", "RL.CHECK p u COST 10", "1 0 0 -1 10 p"},
			{"", "RL.POLICY SET p LIMIT FIXED FOREVER 5 RESET", "2"},
			{"", "EXISTS policy|p|0|u", "0"},
			{"", "RL.CHECK p u COST 5", "1 0 0 -1 5 p"},
		},
		"a hold that is open": {
			{"", "RL.POLICY SET p LIMIT FIXED FOREVER 10", "1"},
			{"", "RL.RESERVE p u 6 1m ID less", "1 4 0 -1 10 less"},
			{"", "RL.RESERVE p u 1 1m ID more", "1 3 0 -1 10 more"},
			{"", "RL.RESERVE p u 1 1m ID ends", "1 2 0 -1 10 ends"},
			{"", "RL.POLICY SET p LIMIT FIXED FOREVER 20", "2"},
			{"", "HMGET policy|p|0|u used holders", "8 0"},
			{"", "RL.COMMIT less 2", "12"},
			{"", "RL.COMMIT more 3", "10"},
			{"", "RL.CANCEL ends", "1"},
			{"60000", "RL.CHECK p u COST 0", "1 10 0 -1 20 p"},
		},
		"a hold that ended": {
			{"", "RL.POLICY SET p LIMIT FIXED FOREVER 10", "1"},
			{"", "RL.RESERVE p u 6 1m ID h", "1 4 0 -1 10 h"},
			{"60000", "RL.POLICY SET p LIMIT FIXED FOREVER 20", "2"},
			{"", "RL.CHECK p u", "1 19 0 -1 20 p"},
		},
		"a hold, and an override with the same limit": {
			{"", "RL.POLICY SET p LIMIT FIXED FOREVER 10", "1"},
			{"", "RL.RESERVE p u 6 1m ID h", "1 4 0 -1 10 h"},
			{"", "RL.POLICY OVERRIDE p u LIMIT FIXED FOREVER 10", "2"},
			{"", "HMGET policy|p|0|u used holders", "6 1"},
			{"60000", "EXISTS policy|p|0|u", "0"},
			{"", "RL.CHECK p u COST 10", "1 0 0 -1 10 p"},
		},
		"from call to call": {
			{"", "RL.TOKENBUCKET b 1/h 3 COST 3", "1 0 0 10800000 3"},
			{"", "RL.TOKENBUCKET b 1/h 10", "1 6 0 14400000 10"},
			{"", "RL.TOKENBUCKET b 1/h 5", "1 0 0 18000000 5"},
			{"", "RL.TOKENBUCKET b 1/s 5", "0 0 1000 5000 5"},
			{"1000", "RL.TOKENBUCKET b 1/h 5", "1 0 0 18000000 5"},
			{"", "RL.SLIDING s 1m 10 COST 10", "1 0 0 60000 10"},
			{"10000", "RL.SLIDING s 1h 10", "0 0 3590000 3590000 10"},
			{"55000", "RL.SLIDING s 1h 10", "0 0 3535000 3535000 10"},
			{"", "PTTL s", "3535000"},
			{"", "RL.STRIKE l 15m 1 1h", "0 0 3600000 3600000 1"},
			{"", "RL.STRIKE l 15m 30 1m", "0 29 3600000 3600000 30"},
			{"", "RL.FIXED f 1h 5 FIRST COST 5", "1 0 0 3600000 5"},
			{"", "RL.SLIDING f 1h 5", "-WRONGTYPE the key belongs to another algorithm until it is idle; " +
				"TYPE shows the algorithm, RL.RESET frees the key"},
			{"3600000", "RL.SLIDING f 1h 5", "1 4 0 3600000 5"},
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
