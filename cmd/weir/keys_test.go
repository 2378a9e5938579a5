package main

import (
	"encoding/json"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/cli/keys"
)

// keysServer is a server with a policy, a key that has its own limiter and the policy's, and further keys.
func keysServer(t *testing.T) *process {
	p := start(t, "--data-dir=")
	p.do("RL.POLICY", "SET", "login", "LIMIT", "FIXED", "1d", "2", "FIRST", "LIMIT", "FIXED", "2d", "9", "FIRST")
	p.do("RL.CHECK", "login", "user:42")
	for _, key := range []string{"user:42", "user:43", "job:1"} {
		p.do("RL.FIXED", key, "FOREVER", 5)
	}
	return p
}

// listed returns the keys that weir keys prints as JSON.
func listed(t *testing.T, args ...string) (names []string) {
	t.Helper()
	var found []keys.Status
	require.NoError(t, json.Unmarshal([]byte(weir(t, append([]string{"keys"}, args...)...)), &found))
	for _, k := range found {
		names = append(names, k.Key)
	}
	return names
}

func TestKeysListAndLook(t *testing.T) {
	p := keysServer(t)
	at := "--addr=" + p.addr
	require.Len(t, listed(t, "list", "--json", at), 5)
	require.ElementsMatch(t, []string{"user:42", "user:43"}, listed(t, "list", "user:*", "--json", at))
	require.Len(t, listed(t, "list", "--limit=2", "--json", at), 2)
	require.Equal(t, []string{"user:42", "policy|login|0|user:42", "policy|login|1|user:42"},
		listed(t, "look", "user:42", "--json", at))
	require.Equal(t, "[]\n", weir(t, "keys", "look", "idle", "--json", at))
	require.Empty(t, listed(t, "list", "--database=1", "--json", at))
	weir(t, "call", at, "--database=1", "RL.FIXED", "user:44", "1d", "5", "FIRST")
	require.Equal(t, []string{"user:44"}, listed(t, "list", "user:*", "--database=1", "--json", at))
	require.Len(t, listed(t, "list", "user:*", "--json", at), 2)
	require.Equal(t, "KEY LIMIT USED LEFT IDLE IN BLOCKED job:1 fixed FOREVER 5 1 4 never no",
		squeezed(weir(t, "keys", "list", "job:?", at)))
}

func TestKeysExplain(t *testing.T) {
	p := keysServer(t)
	require.Contains(t, squeezed(
		weir(t, "keys", "--addr="+p.addr, "explain", "RL.FIXED", "job:1", "FOREVER", "5", "COST", "9")),
		"why the cost of 9 is above the limit of 5: no wait helps")
	var told map[string]any
	require.NoError(t, json.Unmarshal([]byte(
		weir(t, "keys", "--addr="+p.addr, "explain", "--json", "RL.CHECK", "login", "user:42", "COST", "2")), &told))
	require.EqualValues(t, 0, told["allowed"])
	require.Contains(t, refusal(t, exec.Command(binary, "keys", "--addr="+p.addr, "explain", "PING")),
		"must be a decision")
}

func TestKeysResetAndBlock(t *testing.T) {
	p := keysServer(t)
	at := "--addr=" + p.addr
	require.Equal(t, "user:42\n1 to be forgotten\n", weir(t, "keys", "reset", "user:42", "--dry-run", at))
	require.Len(t, listed(t, "look", "user:42", "--json", at), 3, "a dry run must not change anything")
	require.Equal(t, "user:42\n1 forgotten\n", weir(t, "keys", "reset", "user:42", "idle", at))
	require.Empty(t, listed(t, "look", "user:42", "--json", at), "a reset must remove the limiters of every policy")

	require.Equal(t, "user:43\n1 blocked\n",
		weir(t, "keys", "block", "--match=user:*", "--for=1h", "--reason=too fast", at))
	require.Contains(t, squeezed(weir(t, "keys", "look", "user:43", at)), "too fast")
	require.Equal(t, []int64{0}, p.five("RL.FIXED", "user:43", "FOREVER", 5)[:1])
	require.Equal(t, "{\n  \"dry_run\": false,\n  \"unblocked\": [\n    \"user:43\"\n  ]\n}\n",
		weir(t, "keys", "unblock", "user:43", "job:1", "--json", at))
	require.Equal(t, []int64{1}, p.five("RL.FIXED", "user:43", "FOREVER", 5)[:1])

	require.Contains(t, refusal(t, exec.Command(binary, "keys", "reset", at)), keys.ErrWhichKeys.Error())
	require.Contains(t, refusal(t, exec.Command(binary, "keys", "block", "k", "--for=soon", at)), "duration must be")
	require.Contains(t, weir(t, "keys", "reset", "--match=*", at), "2 forgotten\n")
}

// TestReadingCommandsPrintJSON checks that every command that reads has --json, and prints JSON.
func TestReadingCommandsPrintJSON(t *testing.T) {
	p := keysServer(t)
	at := "--addr=" + p.addr
	for _, args := range [][]string{
		{"version", "--json"}, {"dialects", "--json"}, {"policy", "export", "--json", at},
		{"keys", "list", "--json", at}, {"doctor", "--json", "--listen=" + p.addr, "--http="},
	} {
		require.True(t, json.Valid([]byte(weir(t, args...))), "%v", args)
	}
	var policies []map[string]any
	require.NoError(t, json.Unmarshal([]byte(weir(t, "policy", "export", "--json", at)), &policies))
	require.Equal(t, []any{"FIXED 1d 2 FIRST", "FIXED 2d 9 FIRST"}, policies[0]["limits"])
	file := configWith(t, "policies:\n  login:\n    limits: [FIXED 1d 3]\n")
	out, err := exec.Command(binary, "policy", "diff", "--json", "-f", file, at).Output()
	require.Error(t, err)
	require.True(t, json.Valid(out), "%s", out)
}
