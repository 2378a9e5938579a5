package commands

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHolds checks the parts that the server adds to the engine's holds: a generated id, error texts, and the order
// among other commands.
func TestHolds(t *testing.T) {
	c := defaultClient(t)
	c.say("RL.POLICY SET tpm LIMIT FIXED FOREVER 100")
	c.say("RL.POLICY SET rpm LIMIT FIXED FOREVER 2")

	made := strings.Fields(c.say("RL.RESERVE tpm a 10 1m"))
	require.Len(t, made, 6)
	require.Regexp(t, `^\{a\}[A-Z2-7]{26}$`, made[5], "the generated ID is in the slot of the key")
	require.Equal(t, "1", c.say("RL.CANCEL "+made[5]))
	require.Equal(t, "0", c.say("RL.CANCEL nobody"))

	require.Equal(t, "1 1 0 -1 2 r1", c.say("RL.RESERVE tpm a 1 1m AND rpm a ID r1"),
		"the limit with the least left must be reported")
	require.Equal(t, "1 0 0 -1 2 r2", c.say("RL.RESERVE tpm a 1 1m AND rpm a ID r2"))
	require.Equal(t, "0 0 -1 -1 2 nil", c.say("RL.RESERVE tpm a 1 1m AND rpm a ID r3"))
	require.Contains(t, c.say("RL.COMMIT r3 1"), "-NOHOLD there is no hold with this id")
	require.Contains(t, c.say("RL.RESERVE tpm a 2 1m AND rpm a ID r2"),
		"-IDUSED the id names a hold with other arguments")
	require.Contains(t, c.say("RL.RESERVE none a 2 1m"), "there is no policy 'none'")
	require.Contains(t, c.say("RL.RESERVE tpm a 2 1m AND none a"), "there is no policy 'none'")
	require.Equal(t, "1", c.say("RL.COMMIT r2 0"))
	require.Contains(t, c.say("RL.COMMIT r2 1"), "-ERR the hold is settled with another actual")
	require.Equal(t, "1", c.say("RL.COMMIT r2 0"))

	require.Contains(t, c.say("RL.INSPECT policy|rpm|0|a"), "holders 1", "r1")
	require.Contains(t, c.say("RL.EXPLAIN RL.RESERVE tpm a 1000 1m"), "allowed 0")
	require.Equal(t, "1 89 0 -1 100 g", c.say("RL.RESERVE tpm g 11 1m EXPIRE take ID g"))
	require.Contains(t, c.say("RL.RESERVE tpm g 11 1m ID g"), "-IDUSED the id names a hold with other arguments")
	require.Equal(t, "1 79 0 -1 100 21", c.say("RL.EXTEND g 10 SEQ 1 TTL 2m"))
	require.Equal(t, "1 79 0 -1 100 21", c.say("RL.EXTEND g 10 SEQ 1 TTL 2m"), "a retry")
	require.Contains(t, c.say("RL.EXTEND g 11 SEQ 1 TTL 2m"),
		"-IDUSED the ID 'SEQ 1' was used for RL.EXTEND with another n")
	require.Contains(t, c.say("RL.EXTEND g 10 SEQ 3"), "-SEQGAP the next extension of this hold is SEQ 2, not 3")
	require.Equal(t, "0 79 -1 -1 100 21", c.say("RL.EXTEND g 80 SEQ 2"))
	require.Equal(t, "79 0 0 -1 100 100", c.say("RL.EXTEND g 80 SEQ 2 PARTIAL"))
	require.Equal(t, "0", c.say("RL.COMMIT g 30 KEEP"))
	require.Contains(t, c.say("RL.COMMIT g 29"),
		"-ERR the hold is settled with another actual, or has reported a greater")
	require.Equal(t, "1", c.say("RL.CANCEL g"))
	require.Equal(t, "1 70 0 -1 100 tpm", c.say("RL.CHECK tpm g COST 0"), "what was reported stays used")
	require.Contains(t, c.say("RL.EXTEND g 1 SEQ 3"), "-HOLDENDED the hold has ended")
	require.Contains(t, c.say("RL.COMMIT g 40 KEEP"), "-HOLDENDED the hold has ended")
	require.Equal(t, "60", c.say("RL.COMMIT g 40"))
	require.Contains(t, c.say("RL.EXTEND nobody 1 SEQ 1"), "-NOHOLD there is no hold with this id")
	c.say("RL.POLICY SET gone LIMIT FIXED FOREVER 100")
	c.say("RL.RESERVE gone a 1 1m ID gone")
	c.say("RL.POLICY DEL gone")
	require.Contains(t, c.say("RL.EXTEND gone 1 SEQ 1"), "-ERR a policy of the hold was deleted, nothing was taken")

	c.say("MULTI")
	c.say("RL.RESERVE tpm b 40 1m ID m")
	c.say("RL.COMMIT m 15")
	require.Equal(t, "1 60 0 -1 100 m 85", c.say("EXEC"))
}

// TestAnUncountedExtensionGivesNothingBack checks that a limit which did not count an extension gives back no unit that
// the hold has used.
func TestAnUncountedExtensionGivesNothingBack(t *testing.T) {
	for name, c := range map[string]struct{ off, on string }{
		"disabled":  {"RL.POLICY DISABLE f", "RL.POLICY ENABLE f"},
		"shadow":    {"RL.POLICY SHADOW f ON", "RL.POLICY SHADOW f OFF"},
		"unlimited": {"RL.POLICY OVERRIDE f k UNLIMITED", "RL.POLICY OVERRIDE f k NONE"},
	} {
		for end, used := range map[string]int64{"RL.COMMIT h 900": 60, "RL.CANCEL h": 60} {
			t.Run(name+" "+end, func(t *testing.T) {
				conn := newTestServer(t, Config{}).client(t)
				conn.say("RL.POLICY SET f LIMIT FIXED FOREVER 100")
				require.Contains(t, conn.say("RL.RESERVE f k 60 1m ID h"), "1 40 ")
				conn.say(c.off)
				require.NotContains(t, conn.say("RL.EXTEND h 1000 SEQ 1"), "-ERR")
				require.NotContains(t, conn.say("RL.COMMIT h 900 KEEP"), "-ERR")
				conn.say(c.on)
				require.NotContains(t, conn.say(end), "-ERR")
				require.Contains(t, conn.say("RL.CHECK f k COST 0"), fmt.Sprintf("1 %d ", 100-used))
				require.Contains(t, conn.say("RL.COMMIT h 900 KEEP"), "HOLDENDED")
			})
		}
	}
}

// TestATopUpLeavesHoldsOpen checks that a hold gives back what it did not use, although the maximum of the window has
// changed meanwhile, once or several times. A change of the window itself leaves nothing to give back.
func TestATopUpLeavesHoldsOpen(t *testing.T) {
	for change, left := range map[string]int64{
		"RL.POLICY OVERRIDE p k LIMIT FIXED MONTH 300 TZ UTC":                                                        290,
		"RL.POLICY OVERRIDE p k LIMIT FIXED MONTH 300 TZ UTC NOTIFY 50%":                                             290,
		"RL.POLICY OVERRIDE p k LIMIT FIXED MONTH 300 TZ UTC|RL.POLICY OVERRIDE p k NONE":                            90,
		"RL.POLICY OVERRIDE p * LIMIT FIXED MONTH 300 TZ UTC|RL.POLICY OVERRIDE p k LIMIT FIXED MONTH 400 TZ UTC":    390,
		"RL.POLICY SET p LIMIT FIXED MONTH 70 TZ UTC":                                                                60,
		"RL.POLICY SET p LIMIT FIXED MONTH 100 TZ Europe/Berlin":                                                     20,
		"RL.POLICY SET p LIMIT FIXED FOREVER 100":                                                                    20,
		"RL.POLICY SET p LIMIT FIXED FOREVER 100|RL.POLICY SET p LIMIT FIXED MONTH 100 TZ UTC":                       20,
		"RL.POLICY OVERRIDE p k LIMIT FIXED MONTH 300 TZ UTC|RL.CHECK p k COST 0|RL.POLICY OVERRIDE p k NONE":        90,
		"RL.POLICY SHADOW p ON|RL.POLICY SHADOW p OFF|RL.POLICY OVERRIDE p k LIMIT FIXED MONTH 300 TZ UTC":           290,
		"RL.POLICY OVERRIDE p k LIMIT FIXED MONTH 300 TZ UTC|RL.EXTEND h 100 SEQ 1|RL.POLICY SET p LIMIT FIXED 1m 5": 290,
	} {
		for _, end := range []string{"RL.COMMIT h 10", "RL.COMMIT h 10 KEEP|RL.CANCEL h"} {
			t.Run(change+"|"+end, func(t *testing.T) {
				c := newTestServer(t, Config{}).client(t)
				c.say("RL.POLICY SET p LIMIT FIXED MONTH 100 TZ UTC")
				require.Contains(t, c.say("RL.RESERVE p k 80 1m ID h"), "1 20 ")
				for _, line := range strings.Split(change+"|"+end, "|") {
					require.NotContains(t, c.say(line), "-ERR", line)
				}
				require.Contains(t, c.say("RL.CHECK p k COST 0"), fmt.Sprintf("1 %d ", left))
			})
		}
	}
}
