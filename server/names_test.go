package server

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLayoutNames: the limiters of a policy are found by the names that its layout makes.
func TestLayoutNames(t *testing.T) {
	c := defaultClient(t)
	runStepsOn(t, c, []step{
		{"", "RL.POLICY SET login LIMIT TOKENBUCKET 1/s 5 LAYOUT rate-limit:{key}:{policy}", "1"},
		{"", "RL.CHECK login ip:1", "1 4 0 1000 5 login"},
		{"", "RL.CHECK login ip:2", "1 4 0 1000 5 login"},
		{"", "RL.TOKENBUCKET other 1/s 5", "1 4 0 1000 5"},
	})
	require.ElementsMatch(t, []string{"rate-limit:ip:1:login", "rate-limit:ip:2:login"}, listOf(c, "KEYS rate-limit:*"))
	require.ElementsMatch(t, []string{"rate-limit:ip:1:login", "rate-limit:ip:2:login", "other"}, listOf(c, "KEYS *"))
	require.ElementsMatch(t, []string{"policy|login|0|ip:1", "policy|login|0|ip:2"}, listOf(c, "KEYS policy|*"))
	runStepsOn(t, c, []step{
		{"", "SCAN 0 MATCH rate-limit:ip:1:* COUNT 1000", "0 rate-limit:ip:1:login"},
		{"", "GET rate-limit:ip:1:login", "4 of 5 left, as if never used in 1000 ms"},
		{"", "GET rate-limit:ip:3:login", "nil"},
		{"", "TTL rate-limit:ip:1:login", "1"},
		{"", "PTTL rate-limit:ip:1:login", "1000"},
		{"", "TYPE rate-limit:ip:1:login", "tokenbucket"},
		{"", "EXISTS rate-limit:ip:1:login rate-limit:ip:2:login rate-limit:ip:3:login", "2"},
		{"", "DEL rate-limit:ip:1:login rate-limit:ip:3:login", "1"},
		{"", "KEYS rate-limit:*", "rate-limit:ip:2:login"},
		{"", "UNLINK rate-limit:ip:2:login", "1"},
		{"", "KEYS rate-limit:*", ""},
	})
}

// TestLayoutWithin: of two layouts that make a name, it belongs to the one that fixes more.
func TestLayoutWithin(t *testing.T) {
	c := defaultClient(t)
	runStepsOn(t, c, []step{
		{"", "RL.POLICY SET auth LIMIT TOKENBUCKET 1/s 3 LAYOUT rl:auth:{key}", "1"},
		{"", "RL.POLICY SET fails LIMIT SLIDING 1m 5 LAYOUT rl:auth:fail:{key}", "1"},
		{"", "RL.CHECK auth 192.0.2.1", "1 2 0 1000 3 auth"},
		{"", "RL.CHECK auth fail:42", "1 2 0 1000 3 auth"},
		{"", "RL.CHECK fails 42", "1 4 0 60000 5 fails"},
		{"", "TYPE rl:auth:192.0.2.1", "tokenbucket"},
		{"", "TYPE rl:auth:fail:42", "sliding"},
		{"", "DEL rl:auth:fail:42", "1"},
		{"", "RL.CHECK auth fail:42 COST 0", "1 2 0 1000 3 auth"},
		{"", "RL.CHECK fails 42", "1 4 0 60000 5 fails"},
	})
	require.ElementsMatch(t, []string{"rl:auth:192.0.2.1", "policy|auth|0|fail:42", "rl:auth:fail:42"}, listOf(c, "KEYS *"))
	for layout, want := range map[string]string{
		"rl:auth:{key}": "-" + string(errLayoutTaken), "rl:auth:fail:{key}": "-" + string(errLayoutTaken),
		"rl:{key}:x": "-" + string(errLayoutTaken), "rl:auth:{key}:x": "-" + string(errLayoutTaken), "rl:{key}": "1",
	} {
		require.Equal(t, want, c.say("RL.POLICY SET other LIMIT FIXED 1m 5 LAYOUT "+layout), layout)
		c.say("RL.POLICY DEL other")
	}
}

// listOf is the elements of a flat reply.
func listOf(c *testClient, line string) []string { return strings.Fields(c.say(line)) }
