package bench

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCommandTemplate(t *testing.T) {
	plain := Command{Args: []string{"RL.TOKENBUCKET", "{key}", "10", "20"}}
	require.Equal(t, []string{"RL.TOKENBUCKET", "key:1", "10", "20"}, plain.For("key:1"))
	require.Equal(t, []string{"RL.TOKENBUCKET", "{key}", "10", "20"}, plain.Args, "the template stays one")

	script := Command{Args: []string{"EVALSHA", "{sha}", "1", "app:{key}"}, Script: "return 1"}
	require.Equal(t, []string{"EVALSHA", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "1", "app:k"}, script.For("k"))
}

func TestLoadRequests(t *testing.T) {
	l := Load{Clients: 50, Pipeline: 16}
	for _, c := range []struct {
		perSecond float64
		want      int
	}{
		{0, 800},                       // never 0
		{1000, 1600},                   // whole pipelines, rounded down
		{1_000_000, 2_000_000},         // exact
		{1e300, maxRequests},           // bounded
		{800.0/2 - 0.001, 800},         // just short of one round
		{(800*3 - 1) / 2.0, 2 * 800},   // just short of three
		{float64(maxRequests), 2e8},    // the bound is reached before twice the rate
		{maxRequests / 2, maxRequests}, // and exactly at it
	} {
		require.Equal(t, c.want, l.Requests(c.perSecond, 2e9), "%v", c.perSecond)
	}
}

func TestReplies(t *testing.T) {
	const denied, admitted, refused = "denied", "admitted", "refused"
	for _, c := range []struct {
		name  string
		reply Reply
		text  string
		want  string
	}{
		{"admitted", decisionReply(3), "*3\r\n:1\r\n:19\r\n:0\r\n", admitted},
		{"denied", decisionReply(3), "*3\r\n:0\r\n:0\r\n:100\r\n", denied},
		{"too short", decisionReply(5), "*3\r\n:1\r\n:19\r\n:0\r\n", refused},
		{"neither", decisionReply(3), "*3\r\n:7\r\n:19\r\n:0\r\n", refused},
		{"ok for a decision", decisionReply(3), "+OK\r\n", refused},
		{"redis-cell admits", limitedReply(5), "*5\r\n:0\r\n:20\r\n:19\r\n:-1\r\n:1\r\n", admitted},
		{"redis-cell limits", limitedReply(5), "*5\r\n:1\r\n:20\r\n:0\r\n:1\r\n:2\r\n", denied},
		{"ok", okReply(), "+OK\r\n", admitted},
		{"not ok", okReply(), "+QUEUED\r\n", refused},
	} {
		in := newAnswers(strings.NewReader(c.text), 1)
		got, err := in.next()
		require.NoError(t, err, c.name)
		ok, err := c.reply.Read(got)
		require.Equal(t, c.want == admitted, ok, c.name)
		if c.want == refused {
			require.ErrorIs(t, err, ErrNotADecision, c.name)
		} else {
			require.NoError(t, err, c.name)
		}
		_, err = in.next()
		require.ErrorContains(t, err, "EOF", "%s: all of it is read", c.name)
	}
}
