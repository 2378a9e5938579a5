package clienttest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tool returns the path of a program, or skips the test and names the package to install.
func tool(t *testing.T, name, from string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("SKIPPED: %s is not on the PATH (on Debian: apt install %s)", name, from)
	}
	return path
}

// redisTool runs a program of redis-tools against the server and returns its standard output. Any text on its standard
// error fails the test.
func redisTool(t *testing.T, w *weir, stdin, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), tool(t, name, "redis-tools"), append([]string{"-p", w.port()}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	require.NoError(t, cmd.Run(), "%s %q: %s%s", name, args, &stdout, &stderr)
	require.Empty(t, stderr.String(), "%s %q", name, args)
	return stdout.String()
}

// needJSON skips the test if redis-cli does not have --json yet.
func needJSON(t *testing.T) {
	t.Helper()
	version, err := exec.Command(tool(t, "redis-cli", "redis-tools"), "--version").Output()
	require.NoError(t, err)
	major := 0
	_, err = fmt.Sscanf(string(version), "redis-cli %d.", &major)
	require.NoError(t, err, "%s", version)
	if major < 7 {
		t.Skipf("SKIPPED: %s has no --json", bytes.TrimSpace(version))
	}
}

func TestRedisCLI(t *testing.T) {
	needJSON(t)
	server := startWeir(t)
	for range 2 {
		speakCLI(t, server)
		server.restart()
	}
	assert.Equal(t, "1\n9\n0\n360000\n10\n",
		redisTool(t, server, "", "redis-cli", "RL.TOKENBUCKET", "plain", "10/h", "10"))
	assert.Equal(t, "plain\n", redisTool(t, server, "", "redis-cli", "--scan"))
	assert.Contains(t, redisTool(t, server, "", "redis-cli", "--bigkeys"), "Sampled 1 keys in the keyspace!")
	assert.Contains(t, redisTool(t, server, "", "redis-cli", "info"), "redis_version:7.4.0\r\n")
}

// speakCLI sends everything in vectors.json to the standard input of one redis-cli, as a script does.
func speakCLI(t *testing.T, server *weir) {
	t.Helper()
	all := loadVectors(t)
	checks := all.Vectors
	for range all.Pipeline.Times {
		checks = append(checks, vector{Send: all.Pipeline.Send})
	}
	checks = append(checks, vector{Send: []string{"MULTI"}, Reply: "OK"})
	exec := vector{Send: []string{"EXEC"}}
	replies := []any{}
	for _, v := range all.Transaction {
		checks = append(checks, vector{Send: v.Send, Reply: "QUEUED"})
		replies = append(replies, v.Reply)
	}
	exec.Reply = replies
	checks = append(checks, exec)

	var script strings.Builder
	for _, v := range checks {
		script.WriteString(cliLine(v.Send))
	}
	lines := strings.Split(strings.TrimSuffix(redisTool(t, server, script.String(), "redis-cli", "--json"), "\n"), "\n")
	require.Len(t, lines, len(checks))
	admitted := 0
	for i, v := range checks {
		got, err := cliReply(t, lines[i])
		if v.Reply == nil && v.Map == nil && v.Error == "" { // a command of the pipeline, which has no expected reply
			require.NoError(t, err)
			if shown(got.([]any)[0]) == "1" {
				admitted++
			}
			continue
		}
		require.Empty(t, v.check(got, err))
	}
	require.Equal(t, all.Pipeline.Admitted, admitted)
}

// cliLine quotes a command as redis-cli reads it from a line.
func cliLine(args []string) string {
	var b strings.Builder
	for _, arg := range args {
		b.WriteByte('"')
		for i := range len(arg) {
			if c := arg[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
				fmt.Fprintf(&b, `\x%02x`, c)
			} else {
				b.WriteByte(c)
			}
		}
		b.WriteString(`" `)
	}
	return b.String() + "\n"
}

func cliReply(t *testing.T, line string) (any, error) {
	text, failed := strings.CutPrefix(line, "error:")
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var value any
	require.NoError(t, decoder.Decode(&value), "%q", line)
	if failed {
		return nil, errors.New(value.(string))
	}
	return value, nil
}

func TestRedisCLIPassword(t *testing.T) {
	server := startWeir(t, "--requirepass", password)
	take := []string{"RL.TOKENBUCKET", "k", "10/h", "10"}
	assert.Equal(t, "1\n9\n0\n360000\n10\n",
		redisTool(t, server, "", "redis-cli", append([]string{"--no-auth-warning", "-a", password}, take...)...))
	assert.Equal(t, "1\n8\n0\n720000\n10\n", redisTool(t, server, "", "redis-cli",
		append([]string{"-3", "--user", "default", "--pass", password, "--no-auth-warning"}, take...)...))
	assert.Equal(t, "NOAUTH Authentication required.\n\n", redisTool(t, server, "", "redis-cli", take...))

	wrong := exec.Command(tool(t, "redis-cli", "redis-tools"),
		append([]string{"-p", server.port(), "--no-auth-warning", "-a", "wrong"}, take...)...)
	out, _ := wrong.CombinedOutput()
	assert.Contains(t, string(out), "AUTH failed: WRONGPASS")
}

func TestRedisBenchmark(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
	}{
		{"RESP2", []string{"-P", "16"}},
		{"RESP3", []string{"-P", "16", "-3"}},
		{"OneByOne", nil},
		{"Password", []string{"-a", password}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var flags []string
			if c.name == "Password" {
				flags = []string{"--requirepass", password}
			}
			server := startWeir(t, flags...)
			out := redisTool(t, server, "", "redis-benchmark",
				append(c.args, "--csv", "-n", "1600", "-c", "10", "RL.TOKENBUCKET", "bench", "1/h", "300")...)
			assert.Contains(t, out, `"RL.TOKENBUCKET bench 1/h 300"`)
			assert.NotContains(t, strings.ToLower(out), "warning")
			assert.NotContains(t, strings.ToLower(out), "error")

			auth := []string{}
			if len(flags) > 0 {
				auth = []string{"--no-auth-warning", "-a", password}
			}
			left := redisTool(t, server, "", "redis-cli",
				append(auth, "RL.TOKENBUCKET", "bench", "1/h", "300", "COST", "0")...)
			assert.Equal(t, "1\n0\n0\n1080000000\n300\n", left, "exactly the burst was admitted")
			calls := redisTool(t, server, "", "redis-cli", append(auth, "INFO", "commandstats")...)
			assert.Contains(t, calls, "cmdstat_rl.tokenbucket:calls=1601,")
		})
	}
}
