package commands

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWhoPays checks the replies of requests with ELSE, with SPLIT and without.
func TestWhoPays(t *testing.T) {
	srv := newTestServer(t, Config{})
	c := srv.client(t)
	c.say("RL.POLICY SET allowance LIMIT FIXED 1d 100")
	c.say("RL.POLICY SET credits LIMIT FIXED FOREVER 50")
	c.say("RL.POLICY SET slow LIMIT TOKENBUCKET 1/s 2")
	c.say("RL.POLICY SET strikes LIMIT STRIKE 15m 2 5m")

	require.Regexp(t, `^1 30 0 \d+ 100 a allowance 70 credits 0$`,
		c.say("RL.RESERVE allowance acme 70 2m ELSE credits acme ID a"))
	require.Equal(t, "1 10 0 -1 50 b allowance 0 credits 40",
		c.say("RL.RESERVE allowance acme 40 2m ELSE credits acme ID b"))
	require.Equal(t, "1 5 0 -1 50 c allowance 30 credits 5",
		c.say("RL.RESERVE allowance acme 35 2m else credits acme split ID c"))
	require.Equal(t, "1 5 0 -1 50 c allowance 30 credits 5",
		c.say("RL.RESERVE allowance acme 35 2m ELSE credits acme SPLIT ID c"), "a retry")
	require.Contains(t, c.say("RL.RESERVE allowance acme 35 2m ELSE slow acme SPLIT ID c"), "-IDUSED ")
	require.Equal(t, "1 2 0 -1 50 38 allowance 30 credits 8", c.say("RL.EXTEND c 3 SEQ 1"))
	require.Regexp(t, `^0 0 \d+ \d+ 100 38 allowance 30 credits 8$`, c.say("RL.EXTEND c 3 SEQ 2"))
	require.Equal(t, "2 0 0 -1 50 40 allowance 30 credits 10", c.say("RL.EXTEND c 3 SEQ 2 PARTIAL"))
	require.Regexp(t, `^0 0 \d+ \d+ 100 nil$`, c.say("RL.RESERVE allowance acme 9 2m ELSE credits acme SPLIT ID d"))
	require.Equal(t, "8", c.say("RL.COMMIT c 32"), "the credits get back first")

	for range 2 {
		require.Equal(t, "1 5 0 -1 50 credits allowance 0 credits 3",
			c.say("RL.CHECK allowance acme ELSE credits acme COST 3 ID t"))
	}
	require.Contains(t, c.say("RL.CHECK allowance acme ELSE slow acme COST 3 ID t"), "-IDUSED the ID 't' was used for "+
		"RL.CHECK with another policy or key")
	require.Equal(t, "1 4 0 -1 50 credits", c.say("RL.CHECK credits acme"), "a request without ELSE answers as ever")
	require.Contains(t, c.say("RL.EXPLAIN RL.CHECK allowance acme ELSE credits acme SPLIT COST 4"),
		"paid allowance 0 credits 4 policy credits")
	require.NotContains(t, c.say("RL.EXPLAIN RL.CHECK allowance acme ELSE credits acme COST 5"), "paid")
	require.Equal(t, "1 0 0 2000 2 slow allowance 0 slow 2",
		c.say("RL.WAIT RL.CHECK allowance acme ELSE slow acme COST 2 TIMEOUT 0"))

	require.Contains(t, c.say("RL.CHECK allowance acme ELSE strikes acme"), "-ERR a policy with STRIKE ")
	require.Contains(t, c.say("RL.RESERVE allowance acme 1 1m ELSE strikes acme"), "-ERR a policy with STRIKE ")
	require.Contains(t, c.say("RL.CHECK allowance acme ELSE none acme"), "there is no policy 'none'")
	require.Equal(t, "k j i", c.say("COMMAND GETKEYS RL.CHECK p k q j ELSE r i SPLIT COST 2"))
	require.Equal(t, "k j i", c.say("COMMAND GETKEYS RL.RESERVE p k 1 1m AND q j ELSE r i SPLIT"))
}

// TestWhoPaysCounts checks that an admitted request counts for the policies of the alternatives that paid.
func TestWhoPaysCounts(t *testing.T) {
	srv := newTestServer(t, Config{})
	c := srv.client(t)
	for _, name := range []string{"first", "second", "third"} {
		c.say("RL.POLICY SET " + name + " LIMIT FIXED FOREVER 10")
	}
	c.say("RL.CHECK first k ELSE second k COST 7")
	c.say("RL.CHECK first k ELSE second k ELSE third k SPLIT COST 15")
	c.say("RL.CHECK first k ELSE second k ELSE third k COST 11")
	for name, want := range map[string][2]string{"first": {"2", "1"}, "second": {"1", "0"}, "third": {"1", "0"}} {
		got := c.say("RL.POLICY GET " + name)
		require.Contains(t, got, "admitted "+want[0], "%s: %s", name, got)
		require.Contains(t, got, "denied "+want[1], "%s: %s", name, got)
	}
}

// TestOptionsEndThePairs checks that each option may follow the pairs of a policy and a key at once.
func TestOptionsEndThePairs(t *testing.T) {
	c := newTestServer(t, Config{}).client(t)
	c.say("RL.POLICY SET a LIMIT FIXED FOREVER 100")
	c.say("RL.POLICY SET b LIMIT FIXED FOREVER 100")
	for i, option := range []string{"EXPIRE take", "PRIORITY normal", "FROM 192.0.2.1", "ID one", ""} {
		require.Contains(t, c.say("RL.RESERVE a k 1 1m AND b k "+option), fmt.Sprintf("1 %d 0", 99-i), option)
		require.Equal(t, "k k", c.say("COMMAND GETKEYS RL.RESERVE a k 1 1m AND b k "+option), option)
	}
	for i, option := range []string{"COST 1", "PARTIAL", "PRIORITY normal", "FROM 192.0.2.1", "ID two"} {
		require.Contains(t, c.say("RL.CHECK a k b k "+option), fmt.Sprintf("1 %d 0", 94-i), option)
	}
}
