package commands

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAResetOfALimiterByTwoNames checks that a reset which names a limiter twice, by its own name and by the name of its
// layout, answers the same in any order, with an ID and without, and again with the same ID.
func TestAResetOfALimiterByTwoNames(t *testing.T) {
	c := newTestServer(t, Config{}).client(t)
	require.Equal(t, "1", c.say("RL.POLICY SET p LIMIT FIXED 1h 5 LIMIT FIXED 1d 9 LAYOUT rl:{key}"))
	for _, names := range []string{"policy|p|0|k rl:k", "rl:k policy|p|0|k", "rl:k rl:k", "rl:k policy|p|0|k rl:k"} {
		for _, id := range []string{"", " ID one-" + names[:1] + string(rune('a'+len(names)))} {
			require.Contains(t, c.say("RL.CHECK p k COST 2"), "3")
			reset := "RL.RESET other " + names + id
			require.Equal(t, "1", c.say(reset), reset)
			require.Equal(t, "0", c.say("EXISTS policy|p|1|k"), reset)
			if id != "" {
				require.Equal(t, "1", c.say(reset), "again: %s", reset)
			}
		}
	}
}
