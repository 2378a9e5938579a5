package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/freeport"
)

// TestCall checks that weir call prints the same as redis-cli in a terminal.
func TestCall(t *testing.T) {
	p := start(t, "--test-clock", "--data-dir=")
	call := func(words ...string) string { return weir(t, append([]string{"call", "--addr", p.addr}, words...)...) }
	require.Equal(t, "1) (integer) 1\n2) (integer) 2\n3) (integer) 0\n4) (integer) 12000\n5) (integer) 3\n",
		call("RL.TOKENBUCKET", "user:42", "5/m", "3"))
	require.Equal(t, "PONG\n", call("PING"))
	require.Equal(t, "(integer) 12000\n", call("PTTL", "user:42"))
	require.Equal(t, "\"--json\"\n", call("ECHO", "--json"), "flags after the command must be its arguments")
	require.Contains(t, refusal(t, exec.Command(binary, "call", "--addr", p.addr, "RL.FIXED", "k", "1m", "x")),
		"max must be a whole number")
	require.Contains(t, refusal(t, exec.Command(binary, "call", "--addr", p.addr)), `expected "<command> ..."`)
	require.Equal(t, "OK\n", call("--database=1", "SET", "only-in-1", "x"))
	require.Equal(t, "\"x\"\n", call("--database=1", "GET", "only-in-1"))
	require.Equal(t, "(nil)\n", call("GET", "only-in-1"))
	require.Contains(t, refusal(t, exec.Command(binary, "call", "--addr", p.addr, "--database=16", "PING")), "DB index")
	nobody := freeport.Addr(t)
	require.Contains(t, refusal(t, exec.Command(binary, "call", "--addr", nobody, "PING")), "start weir serve")
}

func TestRepliesAreWritten(t *testing.T) {
	var b strings.Builder
	nested := []any{int64(1), []any{[]byte("a\x1b"), []any{"OK", nil}}, []any{}, redis.Error("ERR x\x1b")}
	require.NoError(t, writeReply(&b, nested, ""))
	require.Equal(t, strings.Join([]string{
		`1) (integer) 1`, `2) 1) "a\x1b"`, `   2) 1) OK`, `      2) (nil)`, `3) (empty array)`,
		"4) (error) ERR x\ufffd", ``,
	}, "\n"), b.String())
}
