package commands

import (
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
	c.say("MULTI")
	c.say("RL.RESERVE tpm b 40 1m ID m")
	c.say("RL.COMMIT m 15")
	require.Equal(t, "1 60 0 -1 100 m 85", c.say("EXEC"))
}
