package commands

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSuggestionsHaveARate checks that suggestions are rate-limited. A program that sends a wrong name in a loop gets
// every error, but few suggestions.
func TestSuggestionsHaveARate(t *testing.T) {
	srv := newTestServer(t, Config{})
	c := srv.client(t)
	c.say("RL.POLICY SET login LIMIT TOKENBUCKET 1/s 5")
	for send, meant := range map[string]string{"RL.CHEK login k": "RL.CHECK", "RL.CHECK logn k": "login"} {
		require.Contains(t, c.say(send), "did you mean "+meant)
		srv.suggestions.due.Store(time.Now().Add(time.Hour).UnixNano())
		require.Regexp(t, "^-ERR (unknown command|there is no policy)", c.say(send))
		require.NotContains(t, c.say(send), "did you mean")
		srv.suggestions.due.Store(0)
	}

	for _, send := range []string{"HSET h f v", "zadd z 1 m", "XADD s * f v", "LPUSH l v"} {
		require.Contains(t, c.say(send),
			"(weir keeps limits, and no hashes, lists, sorted sets or streams: docs/migrating.md")
	}

	var s suggestions
	now := time.Unix(1e9, 0)
	taken := func(tries int) (n int) {
		for range tries {
			n += int(oneIf(s.take(now)))
		}
		return n
	}
	require.Equal(t, suggestBurst, taken(2*suggestBurst))
	now = now.Add(3*suggestEvery - 1)
	require.Equal(t, 2, taken(9))
	now = now.Add(time.Hour)
	require.Equal(t, suggestBurst, taken(2*suggestBurst), "an idle hour must not allow more than the burst")
}
