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

// listOf is the elements of a flat reply.
func listOf(c *testClient, line string) []string { return strings.Fields(c.say(line)) }
