package main

import (
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/redcon"

	"github.com/weir-project/weir/internal/cli/policy"
	"github.com/weir-project/weir/internal/cli/remote"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/commands"
	"github.com/weir-project/weir/server/service"
)

// execServer is a server without policies that answers each EXEC with answer's result. An empty answer closes the
// connection.
func execServer(t *testing.T, answer func(exec int) string) (addr string, execs *atomic.Int64) {
	t.Helper()
	execs = new(atomic.Int64)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	srv := redcon.NewServer("", func(conn redcon.Conn, cmd redcon.Command) {
		switch words := strings.ToUpper(string(cmd.Args[0])); {
		case words == "EXEC":
			text := answer(int(execs.Add(1)))
			if text == "" {
				_ = conn.Close()
				return
			}
			conn.WriteArray(1)
			if after, failed := strings.CutPrefix(text, "-"); failed {
				conn.WriteError(after)
			} else {
				conn.WriteInt(1)
			}
		case len(cmd.Args) > 1 && strings.EqualFold(string(cmd.Args[1]), "LIST"):
			conn.WriteArray(0)
		default:
			conn.WriteString("OK")
		}
	}, nil, nil)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(listener) }()
	t.Cleanup(func() {
		require.NoError(t, srv.Close())
		<-served
	})
	return listener.Addr().String(), execs
}

// TestApplyBeginsAnew checks that apply starts over after an error that changed nothing and may pass, and that it
// gives up in the end.
func TestApplyBeginsAnew(t *testing.T) {
	changed := "-" + service.ErrPolicyChanged.Error()
	for name, c := range map[string]struct {
		answer func(exec int) string
		execs  int64
		err    string
	}{
		"others change": {func(exec int) string { return []string{changed, changed, "1"}[exec-1] }, 3, ""},
		"others never stop": {func(int) string { return changed }, policy.MaxTries,
			"another program changes the policies, so nothing was changed"},
		"nodes were restarted": {func(exec int) string {
			return []string{"-ERR " + limiter.ErrOldMember.Error(),
				"1"}[exec-1]
		}, 2, ""},
		"refused": {func(int) string { return "-ERR at most 1000 policies" }, 1,
			"nothing was changed: SET a LIMIT FIXED 1m 1 IF 0: ERR at most 1000 policies"},
		"the connection broke": {func(int) string { return "" }, 1,
			"either all changes were made or none: run the command again"},
	} {
		t.Run(name, func(t *testing.T) {
			addr, execs := execServer(t, c.answer)
			_, err := newTeam(t, addr, "", "a: {limits: [FIXED 1m 1]}").apply(nil)
			if c.err == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.err)
			}
			require.Equal(t, c.execs, execs.Load())
		})
	}
}

// TestWhatARefusedTransactionSays checks that the error of a refused transaction contains only the command that was
// wrong.
func TestWhatARefusedTransactionSays(t *testing.T) {
	p := start(t)
	conn, err := (&remote.Server{}).Dial(p.addr, "")
	require.NoError(t, err)
	defer conn.Close()
	s := &policy.Server{Conn: conn}
	set := []string{"SET", "a", "LIMIT", "FIXED", "1m", "1", "IF", "0"}
	err = s.Change([][]string{set, {"ENABLE", "none"}})
	require.EqualError(t, err,
		"nothing was changed: ENABLE none: ERR there is no policy 'none', RL.POLICY LIST names them all")
	require.NoError(t, s.Change([][]string{set}))
	require.ErrorContains(t, s.Change(make([][]string, commands.MaxBatch+1)),
		"the file makes 1025 changes, and one step takes at most 1024")
	require.True(t, errors.Is(s.Change([][]string{{"DEL", "b"}, set}), policy.ErrChanged))
	p.stop()
}
