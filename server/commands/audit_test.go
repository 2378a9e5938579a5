package commands

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
		`msg=audit user=default addr=127.0.0.1:40001 id=1 command=rl.block args="[RL.BLOCK user:13 1h REASON abuse]" queued=false`,
		"command=config|set", "command=rl.policy|set", "command=flushall",
	} {
		assert.Contains(t, got, want)
	}
	assert.Equal(t, 4, strings.Count(got, "msg=audit"))
	assert.Contains(t, auditOf(t, "MULTI", "RL.UNBLOCK k", "EXEC"),
		"command=rl.unblock args=\"[RL.UNBLOCK k]\" queued=true")
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

func TestWhatIsUnauditedExists(t *testing.T) {
	var names []string
	newCommandTable(families()...).each(func(cmd *command) { names = append(names, cmd.Full) })
	for _, name := range unaudited {
		assert.True(t, slices.Contains(names, name), name)
	}
}
