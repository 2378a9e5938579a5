package commands

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/server/servertest"
	"github.com/weir-project/weir/server/service"
)

// TestUnsupported checks which errors are recorded as unsupported, and under which names. Every line contains a secret,
// which must not get into the log or the table.
func TestUnsupported(t *testing.T) {
	const secret = "hunter2"
	var log servertest.LockedBuffer
	lim := servertest.NewTableLimiter()
	shared, err := NewShared(Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}, lim)
	require.NoError(t, err)
	srv := &testServer{Shared: shared, lim: lim}
	c := srv.client(t)
	long := strings.Repeat("hunter2", 10_000)
	for _, tt := range []struct{ send, kind, command string }{
		{"LPUSH hunter2 hunter2", service.LacksCommand, "lpush"},
		{"ft.search hunter2", service.LacksCommand, "ft.search"},
		{"hunter2 hunter2", service.LacksCommand, service.OtherCommand},
		{"LPUSH|RPUSH hunter2", service.LacksCommand, service.OtherCommand},
		{strings.Repeat("x", 100) + " hunter2", service.LacksCommand, service.OtherCommand},
		{"CLIENT UNBLOCK hunter2", service.LacksSubcommand, "client|unblock"},
		{"CLIENT hunter2", service.LacksSubcommand, "client"},
		{"SET hunter2 hunter2 IFEQ hunter2", service.LacksOption, "set"},
		{"INCREX hunter2 BYFLOAT 1.5", service.LacksOption, "increx"},
		{"EXPIRE hunter2 1 hunter2", service.LacksOption, "expire"},
		{"MULTI hunter2", service.LacksOption, "multi"},
		{"CONFIG SET hunter2 hunter2", service.LacksOption, "config|set"},
		{"HELLO 3 hunter2", service.LacksOption, "hello"},
		{"SELECT 16", service.LacksDatabase, "select"},
		{"EVAL hunter2 0", service.LacksScript, "eval"},
		{"SCRIPT LOAD hunter2x", service.LacksScript, "script|load"},
		{"EVAL " + long + " 0", service.LacksScript, "eval"},
		{"EVALSHA " + allowN + " 2 hunter2 k", service.LacksScript, "evalsha"},
		{"WATCH hunter2", service.RefusesCommand, "watch"},
		{"PUBLISH hunter2 hunter2", service.RefusesCommand, "publish"},
		{"CLIENT CACHING YES", service.RefusesCommand, "client|caching"},
		{"CLIENT TRACKING ON", service.RefusesCommand, "client|tracking"},
		{"CONFIG SET maxmemory hunter2", service.RefusesCommand, "config|set"},
		{"CONFIG REWRITE", service.RefusesCommand, "config|rewrite"},
		{"SADD hunter2 hunter2", service.RefusesCommand, "sadd"},
		{"XREAD STREAMS hunter2 0", service.RefusesCommand, "xread"},
		{"SET k " + long, service.PassesBound, "set"},
		{"GET " + long, service.PassesBound, "get"},
	} {
		shared.Unsupported = service.New(lim, shared.table.infos(), shared.Log).Unsupported // an empty one
		before := len(log.String())
		require.Contains(t, c.say(tt.send), "-", tt.send)
		list := srv.Unsupported.List()
		require.Len(t, list, 1, tt.send)
		require.Equal(t, [2]string{tt.kind, tt.command}, [2]string{list[0].Kind, list[0].Command}, tt.send)
		require.NotEmpty(t, list[0].Advice, tt.send)
		_, logged, _ := strings.Cut(log.String()[before:], "level=WARN")
		require.Equal(t, 1, strings.Count(logged, "weir refused a client's request"), tt.send)
		require.NotContains(t, strings.ToLower(logged+c.say("WEIR.UNSUPPORTED")), secret, tt.send)
	}
}

// TestOrdinaryErrorsAreSupported checks that errors about values, states and permissions are not called unsupported,
// nor what client libraries send when they connect, and that a client without a login leaves no trace.
func TestOrdinaryErrorsAreSupported(t *testing.T) {
	srv := newTestServer(t, Config{EnableDebug: true})
	c := srv.client(t)
	c.say("RL.FIXED fixed 1m 1")
	for _, line := range []string{
		"INCRBY k x", "RL.TOKENBUCKET k ten 1", "RL.SLIDING fixed 1m 1", "EXEC", "GET fixed", "SETEX k 0 v", "DEBUG CLOCK SET 0",
		"RL.CHECK nobody k", "CLIENT MAINT_NOTIFICATIONS ON", "SUNSUBSCRIBE", "EVALSHA " + strings.Repeat("ab", 20) + " 0",
		"CLIENT TRACKING ON OPTIN", "CLIENT TRACKING OFF", "HELLO 4", "SCRIPT KILL",
		"RL.FIXED k 1m", "RL.POLICY", "SET k",
	} {
		c.say(line)
		require.Empty(t, srv.Unsupported.List(), line)
	}
	guarded := newTestServer(t, Config{Password: "p"})
	stranger := guarded.client(t)
	stranger.say("LPUSH a b")
	stranger.say("HELLO 3 nonsense")
	require.Empty(t, guarded.Unsupported.List())
	require.Equal(t, "OK", stranger.say("AUTH p"))
	stranger.say("LPUSH a b")
	require.Len(t, guarded.Unsupported.List(), 1)
}

// TestUnsupportedInATransaction checks that the reason is recorded when EXEC tells only that it was aborted.
func TestUnsupportedInATransaction(t *testing.T) {
	srv := newTestServer(t, Config{})
	c := srv.client(t)
	c.say("CLIENT SETNAME worker")
	c.say("MULTI")
	c.say("ZREMRANGEBYSCORE k 0 1")
	require.Contains(t, c.say("EXEC"), "EXECABORT")
	list := srv.Unsupported.List()
	require.Len(t, list, 1)
	require.Equal(t, "zremrangebyscore", list[0].Command)
	require.Equal(t, "worker", list[0].By())
	require.Equal(t, "1", value(t, srv.Shared,
		`weir_unsupported_commands_total{command="zremrangebyscore",kind="command"}`))
}
