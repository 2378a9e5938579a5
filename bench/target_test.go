package bench

import (
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

func TestScenarioRequests(t *testing.T) {
	s := Scenario{Clients: 50, Pipeline: 16}
	for _, c := range []struct {
		perSecond float64
		want      int
	}{
		{0, 800},                       // never none
		{1000, 1600},                   // whole pipelines, rounded down
		{1_000_000, 2_000_000},         // exact
		{1e300, maxRequests},           // bounded
		{800.0/2 - 0.001, 800},         // just short of one round
		{(800*3 - 1) / 2.0, 2 * 800},   // just short of three
		{float64(maxRequests), 2e8},    // the bound is reached before twice the rate
		{maxRequests / 2, maxRequests}, // and exactly at it
	} {
		require.Equal(t, c.want, s.Requests(c.perSecond, 2e9), "%v", c.perSecond)
	}
}

func TestReplies(t *testing.T) {
	for _, c := range []struct {
		name     string
		reply    Reply
		answer   any
		admitted bool
		refused  bool
	}{
		{"admitted", decisionReply(3), []any{int64(1), int64(19), int64(0)}, true, false},
		{"denied", decisionReply(3), []any{int64(0), int64(0), int64(100)}, false, false},
		{"too short", decisionReply(5), []any{int64(1), int64(19), int64(0)}, false, true},
		{"neither", decisionReply(3), []any{int64(7), int64(19), int64(0)}, false, true},
		{"text", decisionReply(3), []any{int64(1), []byte("19"), int64(0)}, false, true},
		{"null", decisionReply(3), nil, false, true},
		{"ok", okReply(), "OK", true, false},
		{"not ok", okReply(), "QUEUED", false, true},
	} {
		admitted, err := c.reply.Read(c.answer)
		require.Equal(t, c.admitted, admitted, c.name)
		if c.refused {
			require.ErrorIs(t, err, ErrNotADecision, c.name)
		} else {
			require.NoError(t, err, c.name)
		}
	}
}

func TestMissingToolSaysHowToInstallIt(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := FindTools()
	require.ErrorIs(t, err, ErrToolMissing)
	require.ErrorContains(t, err, "redis-server")
	require.ErrorContains(t, err, "apt-get install")
}
