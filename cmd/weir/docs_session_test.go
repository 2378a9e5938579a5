package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"
)

// docSessions are sessions with a server, each with the commands that must come before.
var docSessions = map[string][]string{
	"README.md: > RL.TOKENBUCKET user:42 5/m 3": nil,

	"migrating.md: RL.STRIKE auth:42 15m 4 DELAY 2s 6 DELAY 5s 11 15m ATTEMPTS": nil,

	"policies.md: > RL.POLICY SET login LIMIT FIXED 1m 5 FIRST LIMIT SLIDING 1d 50 RETRYAFTER 60s":  nil,
	"policies.md: > RL.POLICY SET lockout LIMIT STRIKE 15m 4 DELAY 2s 6 DELAY 5s 11 15m ATTEMPTS":   nil,
	"policies.md: > RL.POLICY SET login LIMIT TOKENBUCKET 10/s 15 LAYOUT rate-limit:{key}:{policy}": nil,
	"policies.md: > RL.POLICY SET tpm LIMIT TOKENBUCKET 90000/m 90000":                              nil,
	"policies.md: > RL.POLICY SET allowance LIMIT FIXED MONTH 100000000 NOTIFY 80% 100% RECORD":     nil,
	"policies.md: > RL.POLICY SET usual LIMIT FIXED MONTH 1000 LIMIT TOKENBUCKET 10/s 20":           nil,
	"policies.md: > RL.CHECK org acme team core user 42 COST 3": {
		"RL.POLICY SET org LIMIT FIXED 1d 100", "RL.POLICY SET team LIMIT FIXED 1d 10",
		"RL.POLICY SET user LIMIT FIXED 1d 5",
	},
}

// exchange is a command and the words of its reply. No words mean any reply except an error.
type exchange struct {
	send string
	want []string
}

var (
	sent       = regexp.MustCompile(`^(?:> )?([A-Z][^#]*[^# ])(?:\s+#.*)?$`)
	cliElement = regexp.MustCompile(`^(?:\d+\) )?(?:\(integer\) (-?\d+)|"(.*)"|\(error\) (.+))(?:\s{2,}.*)?$`)
)

// session parses a block: the commands, and the replies as redis-cli shows them or in one line.
func session(t *testing.T, text string) (all []exchange) {
	t.Helper()
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		if m := sent.FindStringSubmatch(line); m != nil {
			all = append(all, exchange{send: m[1]})
			continue
		}
		words := strings.Fields(line)
		if m := cliElement.FindStringSubmatch(line); m != nil {
			words = []string{m[1] + m[2] + m[3]}
		}
		require.NotEmpty(t, all, line)
		last := &all[len(all)-1]
		last.want = append(last.want, words...)
	}
	return all
}

// runSession sends the commands of a block to a server with a stopped clock, and compares the replies.
func runSession(t *testing.T, before []string, text string) {
	p := start(t, "--test-clock", "--data-dir=")
	c := p.dial()
	defer c.Close()
	for _, line := range before {
		require.NotEqual(t, "error", say(c, line)[0], line)
	}
	for _, e := range session(t, text) {
		got := say(c, e.send)
		if e.want == nil {
			require.NotContains(t, got[0], "ERR", e.send)
			continue
		}
		require.Len(t, got, len(e.want), "%s: %q", e.send, got)
		for i := range got {
			require.True(t, sameWord(e.want[i], got[i]), "%s: the page says %q, the server %q", e.send, e.want, got)
		}
	}
}

// say sends a line and returns the words of the reply, which may be an error.
func say(c redis.Conn, line string) (words []string) {
	fields := strings.Fields(line)
	reply, err := c.Do(fields[0], redis.Args{}.AddFlat(fields[1:])...)
	if err != nil {
		return []string{err.Error()}
	}
	return flat(reply)
}

// flat returns the words of a reply. Those of an array in it stand in its place.
func flat(reply any) (words []string) {
	switch reply := reply.(type) {
	case []any:
		for _, e := range reply {
			words = append(words, flat(e)...)
		}
		return words
	case []byte:
		return []string{string(reply)}
	}
	return []string{fmt.Sprint(reply)}
}

// typingMs is how long the pages let their reader type a line.
const typingMs = 30

// sameWord compares words. Numbers as large as times may differ by the time of typing.
func sameWord(want, got string) bool {
	if want == "*" { // it depends on the moment
		return true
	}
	w, errW := strconv.Atoi(want)
	g, errG := strconv.Atoi(got)
	if errW != nil || errG != nil || w < 1000 {
		return want == got
	}
	return g-w >= -typingMs && g-w <= typingMs
}
