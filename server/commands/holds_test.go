package commands

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestHoldsAreListed walks through the holds of a policy and a key: few of them, many of them, and with limits of which
// one has ended.
func TestHoldsAreListed(t *testing.T) {
	srv := newTestServer(t, Config{})
	c := srv.client(t)
	c.say("RL.POLICY SET two LIMIT FIXED 1m 1000 FIRST LIMIT FIXED FOREVER 1000")
	require.Equal(t, "0 ", c.say("RL.HOLDS two a"))
	c.say("RL.RESERVE two a 10 1h ID early")
	require.Equal(t, "0 early 10 0 3600000 return", c.say("RL.HOLDS two a"))
	require.Equal(t, "0 ", c.say("RL.HOLDS two b"))
	srv.lim.Advance(90 * time.Second) // the first window has ended
	c.say("RL.RESERVE two a 20 1h EXPIRE take ID late")
	require.Equal(t, "970", c.say("RL.COMMIT early 4 KEEP"))
	for _, holds := range []string{"late 20 0 3600000 take", "early 6 4 3510000 return"} {
		require.Contains(t, c.say("RL.HOLDS two a"), holds)
	}
	open := map[string]int{"late": 1, "early": 1}
	for i := range 200 {
		id := fmt.Sprint("h", i)
		c.say("RL.RESERVE two a 1 1h ID " + id)
		open[id] = 1
	}
	seen, steps := map[string]int{}, 0
	for cursor := "0"; steps == 0 || cursor != "0"; steps++ {
		reply := c.value("RL.HOLDS two a COUNT 7 CURSOR " + cursor)
		cursor = reply.items[0].text
		require.LessOrEqual(t, len(reply.items[1].items), 7+1)
		for _, x := range reply.items[1].items {
			seen[x.items[0].text]++
		}
	}
	require.Equal(t, open, seen)
	require.Greater(t, steps, 200/8)
	for i := range 200 {
		c.say(fmt.Sprint("RL.CANCEL h", i))
	}
	require.Contains(t, c.say("RL.HOLDS two a"), "late")

	require.Contains(t, c.say("RL.HOLDS none a"), "-ERR there is no policy 'none'")
	require.Contains(t, c.say("RL.HOLDS two a CURSOR x"), "-ERR invalid cursor")
	require.Contains(t, c.say("RL.HOLDS two a COUNT 0"), "-ERR COUNT")
	require.Contains(t, c.say("RL.HOLDS two a MATCH x"), "-ERR option must be CURSOR cursor, COUNT n")
	require.Contains(t, c.say("RL.HOLDS two a COUNT"), "-ERR syntax error")
}
