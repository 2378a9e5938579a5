package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"
)

func TestServe(t *testing.T) {
	p := start(t)
	require.Equal(t, "PONG", p.do("PING"))
	require.Equal(t, []int64{1, 9, 0, 1000, 10}, p.five("RL.TOKENBUCKET", "k", "1", "10"))
	require.Equal(t, "OK", p.do("SAVE"))

	require.Equal(t, "ok\n", get(t, p.web+"/livez"))
	require.Equal(t, "ok\n", get(t, p.web+"/readyz"))
	metrics := get(t, p.web+"/metrics")
	for _, want := range []string{
		`weir_decisions_total{algorithm="tokenbucket",result="admitted"} 1`,
		"weir_build_info{", "weir_memory_bytes ", "weir_connections_total ", "go_goroutines ",
	} {
		require.Contains(t, metrics, want)
	}
	p.stop()
	require.Contains(t, p.output(), `"msg":"stopped"`)
}

func get(t *testing.T, url string) string {
	t.Helper()
	reply, err := http.Get(url)
	require.NoError(t, err)
	defer reply.Body.Close()
	require.Equal(t, http.StatusOK, reply.StatusCode)
	body, err := io.ReadAll(reply.Body)
	require.NoError(t, err)
	return string(body)
}

func TestWithoutADisk(t *testing.T) {
	p := start(t, "--data-dir=", "--http=")
	require.Empty(t, p.web)
	require.Equal(t, []int64{1, 9, 0, 1000, 10}, p.five("RL.TOKENBUCKET", "k", "1", "10"))
	_, err := p.dial().Do("SAVE")
	require.ErrorContains(t, err, "in memory only")
	p.stop()
	left, err := os.ReadDir(p.cmd.Dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestStateSurvivesACleanRestart checks that the state after a clean restart equals the state before, to the
// millisecond.
func TestStateSurvivesACleanRestart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	args := []string{"--data-dir=" + dir, "--test-clock"}
	p := start(t, args...)
	now, err := redis.Ints(p.do("TIME"), nil)
	require.NoError(t, err)
	// Advance to a minute after a full hour, so that no window ends within the test.
	p.do("DEBUG", "CLOCK", "ADVANCE", fmt.Sprint((3600-now[0]%3600+60)*1000))
	for _, command := range [][]any{
		{"RL.TOKENBUCKET", "bucket", "7/m", "20", "COST", "13"},
		{"RL.LEAKYBUCKET", "leaky", "1/m", "5"},
		{"RL.FIXED", "fixed", "1h", "10", "COST", "4"},
		{"RL.FIXED", "month", "MONTH", "10", "TZ", "Asia/Tokyo"},
		{"RL.SLIDING", "sliding", "10m", "10", "COST", "3"},
		{"RL.SLIDINGCOUNTER", "counter", "10m", "10", "COST", "3"},
		{"RL.ACQUIRE", "lease", "3", "60", "HOLDER", "me"},
		{"RL.STRIKE", "strikes", "15m", "2", "1m", "5", "10m"},
		{"RL.BLOCK", "blocked", "FOREVER", "REASON", "abuse"},
		{"RL.TOKENBUCKET", "once", "1/m", "5", "ID", "token"},
	} {
		p.do(command[0].(string), command[1:]...)
		p.do("DEBUG", "CLOCK", "ADVANCE", "1234")
	}
	keys := []string{"bucket", "leaky", "fixed", "month", "sliding", "counter", "lease", "strikes", "blocked", "once"}
	describe := func(p *process) (all []string) {
		for _, key := range keys {
			pairs, err := redis.Values(p.do("RL.INSPECT", key), nil)
			require.NoError(t, err)
			require.NotEmpty(t, pairs, key)
			for i := 0; i < len(pairs); i += 2 {
				if name := fmt.Sprintf("%s", pairs[i]); name != "bytes" { // a loaded table is packed more tightly
					all = append(all, fmt.Sprintf("%s: %s = %s", key, name, pairs[i+1]))
				}
			}
			all = append(all, fmt.Sprint(key, ": PTTL = ", p.do("PTTL", key)))
		}
		return all
	}
	before := describe(p)
	p.stop()
	p = start(t, args...)
	require.Equal(t, before, describe(p))
	again := p.five("RL.TOKENBUCKET", "once", "1/m", "5", "ID", "token")
	require.Equal(t, int64(4), again[1], "the ID must be remembered across the restart")
	p.stop()
}

func TestShutdownCommandAndSecondSignal(t *testing.T) {
	p := start(t)
	_, err := p.dial().Do("SHUTDOWN")
	require.Error(t, err, "the connection must end")
	require.Zero(t, p.wait(), p.output())

	p = start(t)
	stuck, err := net.Dial("tcp", p.addr)
	require.NoError(t, err)
	defer stuck.Close()
	// A client that reads nothing delays the drain.
	flood := bytes.Repeat([]byte("*2\r\n$4\r\nECHO\r\n$1000\r\n"+string(bytes.Repeat([]byte("x"), 1000))+"\r\n"), 1000)
	require.NoError(t, stuck.SetWriteDeadline(time.Now().Add(2*time.Second)))
	for err == nil {
		_, err = stuck.Write(flood)
	}
	p.signal(syscall.SIGTERM)
	require.Eventually(t, func() bool {
		return bytes.Contains([]byte(p.output()), []byte("a second signal stops at once"))
	}, patience, time.Millisecond)
	p.signal(syscall.SIGTERM)
	require.Equal(t, -1, p.wait(), "the signal must end the process")
}

func TestRefusals(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	foreign := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(foreign, "letter.txt"), nil, 0o600))
	newer := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(newer, "FORMAT"), []byte("weir data format 9\n"), 0o600))
	running := start(t)
	inUse := filepath.Join(running.cmd.Dir, "weir-data")
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"open to the world":    {[]string{"--listen=0.0.0.0:0"}, "without a password"},
		"metrics to the world": {[]string{"--http=:0"}, "--http is :0"},
		"port taken":           {[]string{"--listen=" + taken.Addr().String()}, "address already in use"},
		"somebody's files":     {[]string{"--data-dir=" + foreign}, "letter.txt"},
		"newer format":         {[]string{"--data-dir=" + newer}, "newer version of weir"},
		"in use":               {[]string{"--data-dir=" + inUse}, "another weir is using it"},
		"no listener":          {[]string{"--listen="}, "--listen must not be empty"},
		"unknown flag":         {[]string{"--lisen=x"}, "did you mean"},
		"absurd limit": {[]string{"--data-dir=", "--max-bulk-bytes=1"},
			"--max-bulk-bytes must be 1kb or more"},
		"missing password file":  {[]string{"--requirepass-file=/does/not/exist"}, "--requirepass-file"},
		"password in two places": {[]string{"--requirepass=a", "--requirepass-file=b"}, "give one of them"},
		"unknown policy":         {[]string{"--when-full=shrug"}, "least-harm"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := serveCommand(c.args...)
			cmd.Dir = t.TempDir()
			require.Contains(t, refusal(t, cmd), c.says)
		})
	}
	require.Equal(t, "PONG", running.do("PING"), "the running server must not be disturbed")
}

func TestADirectoryWeirMayNotWrite(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o555))
	cmd := serveCommand("--data-dir=" + filepath.Join(dir, "data"))
	cmd.Dir = "/"
	if os.Getuid() == 0 { // root may write anywhere
		for up := dir; up != os.TempDir() && up != "/"; up = filepath.Dir(up) {
			require.NoError(t, os.Chmod(up, 0o555))
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	said := refusal(t, cmd)
	require.Contains(t, said, "weir has no permission to write there")
	require.Contains(t, said, "permission denied")
}

func TestPasswordFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(file, []byte("secret\n"), 0o600))
	p := start(t, "--requirepass-file="+file, "--listen=0.0.0.0:0") // with a password this is allowed
	c, err := redis.Dial("tcp", "127.0.0.1"+p.addr[strings.LastIndexByte(p.addr, ':'):])
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Do("PING")
	require.ErrorContains(t, err, "NOAUTH")
	_, err = c.Do("AUTH", "secret")
	require.NoError(t, err)
	_, err = c.Do("PING")
	require.NoError(t, err)
	p.stop()
}

func TestOtherCommands(t *testing.T) {
	for want, args := range map[string][]string{
		"weir ":       {"version"},
		"RL.FIXED":    {"help"},
		"--data-dir=": {"serve", "--help"},
		"Commands:":   {},
	} {
		out, err := exec.Command(binary, args...).Output()
		require.NoError(t, err, args)
		require.Contains(t, string(out), want)
	}
	require.Contains(t, refusal(t, exec.Command(binary, "help", "rl.nothing")), "rl.nothing")
}
