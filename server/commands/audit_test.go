package commands

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/server/acl"
	"github.com/weir-project/weir/server/servertest"
)

// auditOf returns the log lines about the commands of a user with all permissions.
func auditOf(t *testing.T, lines ...string) string {
	t.Helper()
	var log servertest.LockedBuffer
	srv, err := NewShared(Config{EnableDebug: true, Logger: slog.New(slog.NewTextHandler(&log, nil))},
		servertest.NewTableLimiter())
	require.NoError(t, err)
	c := (&testServer{Shared: srv}).client(t)
	for _, line := range lines {
		c.say(line)
	}
	return log.String()
}

func TestAdministrationLeavesALine(t *testing.T) {
	got := auditOf(t, "RL.BLOCK user:13 1h REASON abuse", "CONFIG SET slowlog-max-len 5",
		"RL.POLICY SET p LIMIT TOKENBUCKET 1/s 1", "FLUSHALL")
	for _, want := range []string{
		`msg=audit user=default addr=127.0.0.1:40001 id=1 command=rl.block args="RL.BLOCK user:13 1h REASON abuse" queued=false`,
		"command=config|set", "command=rl.policy|set", "command=flushall",
	} {
		assert.Contains(t, got, want)
	}
	assert.Equal(t, 4, strings.Count(got, "msg=audit"))
	assert.Contains(t, auditOf(t, "MULTI", "RL.UNBLOCK k", "EXEC"),
		"command=rl.unblock args=\"RL.UNBLOCK k\" queued=true")
}

func TestOrdinaryCommandsLeaveNone(t *testing.T) {
	assert.Empty(t, auditOf(t, "RL.TOKENBUCKET k 1/s 1", "RL.RESET k", "DEL k", "INFO", "CLIENT LIST", "CONFIG GET *",
		"SLOWLOG GET", "RL.POLICY LIST",
		"CONFIG HELP", "AUTH default secret", "HELLO 3 AUTH default secret"))
}

// TestAuditLinesAreBounded checks that a log line is bounded and contains no line break.
func TestAuditLinesAreBounded(t *testing.T) {
	got := auditOf(t, "CLIENT KILL ID 1 "+strings.Repeat(" ADDR "+strings.Repeat("x", 1000), 20))
	assert.Less(t, len(got), 3000)
	assert.Contains(t, got, "...")
	assert.Equal(t, 1, strings.Count(got, "\n"))
}

// TestAuditedArgumentsAreDistinct checks that no argument looks like two, or two like one, and that the dots of a cut
// are not those of an argument.
func TestAuditedArgumentsAreDistinct(t *testing.T) {
	long := strings.Repeat("x", auditedBytes+1)
	seen := make(map[string]string)
	for want, args := range map[string][]string{
		`RL.BLOCK a 1h REASON x`:                       {"RL.BLOCK", "a", "1h", "REASON", "x"},
		`RL.BLOCK "a 1h" REASON x`:                     {"RL.BLOCK", "a 1h", "REASON", "x"},
		`RL.BLOCK a 1h REASON "x] queued=true"`:        {"RL.BLOCK", "a", "1h", "REASON", "x] queued=true"},
		`RL.BLOCK a "1h\" \"REASON" x`:                 {"RL.BLOCK", "a", `1h" "REASON`, "x"},
		`RL.BLOCK a "" x`:                              {"RL.BLOCK", "a", "", "x"},
		`RL.BLOCK "a\nb" "\\n" "\xff"`:                 {"RL.BLOCK", "a\nb", `\n`, "\xff"},
		`RL.BLOCK "..."`:                               {"RL.BLOCK", "..."},
		`RL.BLOCK "` + long[1:] + `"...`:               {"RL.BLOCK", long},
		`RL.BLOCK ` + long[:61] + `...`:                {"RL.BLOCK", long[:61] + "..."},
		`RL.BLOCK` + strings.Repeat(" a", 15) + ` ...`: append([]string{"RL.BLOCK"}, slices.Repeat([]string{"a"}, 16)...),
	} {
		got := auditedLine(args)
		assert.Equal(t, want, got)
		assert.Empty(t, seen[got])
		seen[got] = want
	}
}

// TestNoSecretIsShown checks that no password reaches the audit log, MONITOR or SLOWLOG, even in a command that weir
// refuses.
func TestNoSecretIsShown(t *testing.T) {
	var log servertest.LockedBuffer
	srv, err := NewShared(Config{EnableDebug: true, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		LoadUsers: func() (*acl.Users, error) { return ParseUsers([]byte("user default on nopass ~* +@all")) },
	}, servertest.NewTableLimiter())
	require.NoError(t, err)
	server := &testServer{Shared: srv}
	monitor, c := server.client(t), server.client(t)
	require.Equal(t, "OK", monitor.say("MONITOR"))
	require.Equal(t, "OK", c.say("CONFIG SET slowlog-log-slower-than 0"))
	for _, send := range []string{
		"AUTH hunter2", "AUTH default hunter2", "HELLO 3 AUTH default hunter2 SETNAME me",
		"CONFIG SET requirepass hunter2", "CONFIG SET masterauth hunter2 slowlog-max-len 9",
		"CONFIG SET slowlog-max-len 9 tls-key-file-pass hunter2", "CONFIG SET unheard-of hunter2",
		"ACL SETUSER boss on >hunter2 ~* +@all",
	} {
		c.say(send)
	}
	shown := log.String() + monitor.fake.messages() + c.raw("SLOWLOG", "GET", "-1")
	assert.NotContains(t, shown, "hunter2")
	assert.Contains(t, log.String(), "CONFIG SET requirepass (redacted)")
	assert.Contains(t, log.String(), "CONFIG SET masterauth (redacted) slowlog-max-len 9")
}

func TestWhatIsUnauditedExists(t *testing.T) {
	var names []string
	newCommandTable(families()...).each(func(cmd *command) { names = append(names, cmd.Full) })
	for _, name := range unaudited {
		assert.True(t, slices.Contains(names, name), name)
	}
}
