package migrate

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/freeport"
	"github.com/weir-project/weir/server/service"
)

func TestParseEntry(t *testing.T) {
	e, ok := parseEntry([]byte(`+1339518083.107412 [3 127.0.0.1:60866] "set" "a\x00\"\\\n\r\t\a\bz" "" "\xFF\xff"`))
	require.True(t, ok)
	require.Equal(t, entry{"3", "127.0.0.1:60866", []string{"set", "a\x00\"\\\n\r\t\a\bz", "", "\xff\xff"}}, e)
	for _, addr := range []string{"lua", "[::1]:6379", "unix:/run/redis.sock"} {
		e, ok = parseEntry([]byte(`1.0 [0 ` + addr + `] "get" "] \"x\""`))
		require.True(t, ok, addr)
		require.Equal(t, entry{"0", addr, []string{"get", `] "x"`}}, e)
	}
	for _, line := range []string{"", "OK", `1.0 [0 a:1]`, `1.0 [0 a:1] `, `1.0 [0] "get"`, `1.0 [0 a:1] get`,
		`1.0 [0 a:1] "get`, `1.0 [0 a:1] "get" x`, `1.0 [0 a:1] "\`, `1.0 [0 a:1] "\q"`, `1.0 [0 a:1] "\x4"`,
		`1.0 [0 a:1] "\xg0"`, `"get" [`} {
		_, ok := parseEntry([]byte(line))
		require.False(t, ok, line)
	}
}

func FuzzParseEntry(f *testing.F) {
	f.Add([]byte(`1.0 [0 127.0.0.1:1] "get" "\x00\"" ""`))
	f.Fuzz(func(t *testing.T, line []byte) {
		e, ok := parseEntry(line)
		require.Equal(t, ok, len(e.args) > 0 && ok)
		size := 0
		for _, a := range e.args {
			size += len(a)
		}
		require.LessOrEqual(t, size, len(line))
	})
}

// fromLines tries lines of MONITOR.
func fromLines(t *testing.T, lines ...string) *report {
	t.Helper()
	trial, err := newTrial()
	require.NoError(t, err)
	defer trial.close()
	// The end of the lines ends the watch with an error, as when the server goes away.
	require.Error(t, trial.follow(bufio.NewReaderSize(strings.NewReader(strings.Join(lines, "\r\n")+"\r\n"), maxLine)))
	return trial.report()
}

func TestTrialIsBounded(t *testing.T) {
	r := fromLines(t, `+1.0 [0 a:1] "set" "k" "`+strings.Repeat("x", maxLine)+`"`, "nonsense", `+1.0 [0 a:1] "get" "k"`)
	require.EqualValues(t, 2, r.Unread)
	require.EqualValues(t, 1, r.Seen)
	var lines []string
	for i := range maxClients + 100 {
		lines = append(lines, fmt.Sprintf(`+1.0 [0 10.0.%d.%d:1] "get" "k"`, i/256, i%256))
	}
	require.Equal(t, maxClients+1, fromLines(t, lines...).Clients)
}

// TestTrialDoesNotWait sends what would stop, delay or end a server.
func TestTrialDoesNotWait(t *testing.T) {
	r := fromLines(t, `+1.0 [0 a:1] "CLIENT" "PAUSE" "100000"`, `+1.0 [0 a:1] "SHUTDOWN"`, `+1.0 [0 a:1] "MONITOR"`,
		`+1.0 [0 a:1] "wait" "9" "0"`, `+1.0 [0 lua] "HSET" "k" "f" "v"`, `+1.0 [0 a:1] "QUIT"`, `+1.0 [0 a:1] "GET" "k"`,
		`+1.0 [0 a:1] "XREAD" "BLOCK" "0" "STREAMS" "weir:events" "$"`)
	require.Zero(t, r.Refused, "%+v", r.Requests)
	require.EqualValues(t, 2, r.Seen)
}

// TestWatch watches a real Redis.
func TestWatch(t *testing.T) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("SKIPPED: redis-server is missing (on Debian: apt install redis-server)")
	}
	addr := freeport.Addr(t)
	_, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	server := exec.Command(path, "--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no",
		"--dir", t.TempDir(), "--requirepass", "secret")
	out, err := server.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, server.Start())
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	for log := bufio.NewScanner(out); log.Scan() && !strings.Contains(log.Text(), "Ready to accept"); {
	}
	c := &watchCmd{Addr: addr}
	_, _, err = c.connect()
	require.ErrorContains(t, err, "NOAUTH")

	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer conn.Close()
	in := bufio.NewReaderSize(conn, maxLine)
	require.NoError(t, ask(conn, in, "AUTH", "secret"))
	require.NoError(t, ask(conn, in, "MONITOR"))
	app, err := redis.Dial("tcp", addr, redis.DialPassword("secret"))
	require.NoError(t, err)
	defer app.Close()
	const lua = "return redis.call('INCR', KEYS[1])"
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	sha, err := redis.String(app.Do("SCRIPT", "LOAD", lua))
	require.NoError(t, err)
	for range 3 {
		for _, line := range [][]any{
			{"CLIENT", "SETNAME", "app"}, {"SET", "k", every}, {"INCR", "n"}, {"EXPIRE", "n", 60, "NX"},
			{"ZADD", "z", 1, "a"}, {"LPUSH", "l", every}, {"EVALSHA", sha, 1, "n"}, {"EVAL", lua, 1, "n"},
			{"CLIENT", "TRACKING", "ON"},
			{"GET", "k"}, {"PING"},
		} {
			_, err := app.Do(line[0].(string), line[1:]...)
			require.NoError(t, err, "%v", line)
		}
	}
	require.NoError(t, server.Process.Kill())
	trial, err := newTrial()
	require.NoError(t, err)
	defer trial.close()
	require.Error(t, trial.follow(in))
	r := trial.report()
	require.Zero(t, r.Unread)
	counts := make(map[string]int64)
	for _, u := range r.Requests {
		counts[u.Kind+" "+u.Command+" "+u.SHA1] = u.Count
	}
	require.Equal(t, map[string]int64{
		service.LacksCommand + " zadd ": 3, service.LacksCommand + " lpush ": 3,
		service.RefusesCommand + " client|tracking ": 3,
		service.LacksScript + " script|load " + sha:  1, // before the client had a name
		service.LacksScript + " eval " + sha:         6,
	}, counts)
	value, err := trial.clients[r.Requests[0].Addr].session.Do("GET", "k")
	require.NoError(t, err)
	require.Equal(t, []string{string(every)}, value, "each byte must arrive")
	var text bytes.Buffer
	require.NoError(t, c.write(&text, r))
	require.Contains(t, text.String(), sha)
	require.Contains(t, text.String(), "127.0.0.1:")
}
