package clienttest

import (
	"bufio"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sameness is how much of its answer weir shares with Redis.
type sameness int

const (
	exactly  sameness = iota // every byte
	byWord                   // the first word of an error, and the type of any other reply
	byFields                 // the names of the fields in a map
)

// dialogue is a sequence of lines that one connection sends. Lines are sent unchanged, so they are usually inline
// commands.
type dialogue struct {
	same  sameness
	lines []string
}

// dialogues are the commands that weir answers as Redis does. Programs compare these texts and types.
var dialogues = []dialogue{
	{exactly, []string{"PING", "PING hello", "PING a b", "ping"}},
	{exactly, []string{"ECHO hi", "ECHO", "ECHO a b", `ECHO "a\x00\r\n\"b"`, `ECHO 'it\'s'`}},
	{exactly, []string{"NOPE", "NOPE a b", "nope 'a b' \"c\\r\\nd\"", "NOPE " + strings.Repeat("x", 200) + " y",
		strings.Repeat("N", 200) + " y"}},
	{exactly, []string{"NOPE " + strings.Repeat("abcdefghi ", 20)}},
	{exactly, []string{"SELECT 0", "SELECT abc", "SELECT 99999", "SELECT -1", "SELECT"}},
	{exactly, []string{"", "   ", "*0\r\n", "*-1\r\n", "PING"}},
	{exactly, []string{"CLIENT GETNAME", "CLIENT SETNAME me", "CLIENT GETNAME", `CLIENT SETNAME "a b"`,
		"CLIENT SETNAME ''", "CLIENT GETNAME"}},
	{exactly, []string{"CLIENT", "CLIENT NOPE", "CLIENT MAINT_NOTIFICATIONS ON moving-endpoint-type internal-ip",
		"CLIENT GETNAME x"}},
	{exactly, []string{"CLIENT NO-EVICT on", "CLIENT REPLY ON", "CLIENT REPLY x",
		"CLIENT KILL 1.2.3.4:5", "CLIENT UNPAUSE"}},
	{exactly, []string{"CLIENT TRACKING ON OPTIN", "CLIENT TRACKING OFF", "CLIENT KILL ID abc"}},
	{byWord, []string{"CLIENT ID", "CLIENT INFO", "CLIENT LIST"}},
	{exactly, []string{"HELLO 4", "HELLO abc", "HELLO 3 NOPE", "HELLO 3 AUTH default", "HELLO 3 SETNAME", "HELLO 1",
		"PING"}},
	{byFields, []string{"HELLO", "HELLO 2", "HELLO 3", "HELLO 3 SETNAME x", "HELLO", "HELLO 2 SETNAME x"}},
	{exactly, []string{"HELLO 3 SETNAME 'a b'", "CLIENT GETNAME"}},
	{exactly, []string{"AUTH x", "AUTH a b", "AUTH", "AUTH a b c"}},
	{byWord, []string{"SCAN 0 COUNT 0", "SCAN 0 COUNT abc", "CLIENT PAUSE abc"}},
	{byWord, []string{"COMMAND COUNT", "COMMAND LIST", "COMMAND", "COMMAND DOCS ping", "COMMAND NOPE",
		"COMMAND GETKEYS ping", "COMMAND GETKEYS nope a", "COMMAND GETKEYS"}},
	{exactly, []string{"COMMAND DOCS nope", "COMMAND LIST FILTERBY PATTERN nope*", "COMMAND GETKEYS del a b"}},
	{exactly, []string{"TYPE none", "EXISTS none", "EXISTS none none", "DEL none", "UNLINK none none", "TTL none",
		"PTTL none", "DEL", "TYPE a b", "EXISTS"}},
	{exactly, []string{"SCAN 0", "SCAN 0 COUNT 5 MATCH x*", "SCAN abc", "SCAN 0 MATCH", "SCAN 0 NOPE x", "SCAN"}},
	{exactly, []string{"KEYS *", "KEYS", "DBSIZE", "RANDOMKEY", "MEMORY USAGE none", "HGETALL none", "FLUSHALL",
		"FLUSHDB", "FLUSHALL NOPE", "FLUSHDB ASYNC"}},
	{exactly, []string{"OBJECT ENCODING none", "OBJECT NOPE x", "MEMORY NOPE"}},
	{exactly, []string{"MULTI", "MULTI", "PING", "EXEC", "EXEC", "DISCARD"}},
	{exactly, []string{"MULTI", "PING", "ECHO hi", "EXEC"}},
	{exactly, []string{"MULTI", "EXEC", "MULTI", "PING", "DISCARD", "EXEC", "UNWATCH"}},
	{exactly, []string{"MULTI", "NOPE", "PING", "EXEC", "EXEC"}},
	{exactly, []string{"MULTI", "PING a b", "EXEC", "PING"}},
	{exactly, []string{"RESET", "MULTI", "RESET", "EXEC", "RESET x"}},
	{exactly, []string{"QUIT", "PING"}},
	{exactly, []string{"PING \"abc", "PING"}},
	{exactly, []string{"PING 'abc'x", "PING"}},
	{exactly, []string{"*1\r\nPING", "PING"}},
	{exactly, []string{"*abc", "PING"}},
	{exactly, []string{"*1\r\n$abc", "PING"}},
	{exactly, []string{"*1\r\n$-2", "PING"}},
	{exactly, []string{"*9999999999999999999", "PING"}},
	{exactly, []string{"*1\r\n$9999999999999999999", "PING"}},
	{byWord, []string{"INFO", "INFO nope", "INFO server", "TIME", "LASTSAVE", "ROLE", "CONFIG GET maxmemory",
		"LATENCY LATEST", "ACL LIST", "ACL CAT"}},
	{exactly, []string{"INFO nope", "CONFIG GET nope", "CONFIG NOPE", "CONFIG SET nope 1", "CONFIG GET",
		"CONFIG RESETSTAT", "TIME x", "WAIT 0 0", "WAIT abc 0"}},
	{exactly, []string{"ACL WHOAMI", "ACL NOPE", "CONFIG SET slowlog-log-slower-than -1", "SLOWLOG RESET",
		"SLOWLOG LEN", "SLOWLOG GET 5", "SLOWLOG NOPE", "SLOWLOG GET abc", "LATENCY RESET", "LATENCY NOPE"}},
	{exactly, []string{"CLUSTER SLOTS", "CLUSTER SHARDS", "CLUSTER NODES"}},
	{exactly, []string{"SUBSCRIBE a b", "UNSUBSCRIBE a", "PSUBSCRIBE p*", "PING", "PING hi", "UNSUBSCRIBE",
		"PUNSUBSCRIBE", "PING"}},
	{exactly, []string{"SUBSCRIBE", "SUBSCRIBE a", "ECHO hi", "RESET", "ECHO hi", "UNSUBSCRIBE"}},
	{exactly, []string{"SHUTDOWN NOPE", "SHUTDOWN ABORT", "SAVE x"}},
}

// guardedDialogues are such commands on servers that require a password. Before the login, weir answers every command
// with NOAUTH, while Redis first checks its name and arguments.
var guardedDialogues = []dialogue{
	{exactly, []string{"PING", "ECHO hi", "HELLO 4", "COMMAND COUNT", "MULTI", "QUIT"}},
	{byWord, []string{"HELLO", "HELLO 2", "HELLO 3", "HELLO 3 SETNAME x", "PING"}},
	{exactly, []string{"AUTH wrong", "AUTH default wrong", "AUTH nobody secret", "AUTH", "AUTH a b c",
		"HELLO 3 AUTH default wrong", "PING", "AUTH secret", "PING"}},
	{exactly, []string{"AUTH default secret", "PING", "AUTH wrong", "PING"}},
	{byFields, []string{"HELLO 3 AUTH default secret SETNAME x", "HELLO"}},
	{exactly, []string{"RESET", "PING", "AUTH secret", "PING", "RESET", "PING"}},
	{exactly, []string{"*11", "PING"}},
	{exactly, []string{"*1\r\n$16385", "PING"}},
}

func TestAnswersAsRedisDoes(t *testing.T) {
	compare(t, dialogues, startRedis(t), startWeir(t).addr)
}

func TestUnauthenticatedClientsGetRedisErrors(t *testing.T) {
	compare(t, guardedDialogues, startRedis(t, "--requirepass", "secret"), startWeir(t, "--requirepass", "secret").addr)
}

func compare(t *testing.T, dialogues []dialogue, redisSocket, weirAddr string) {
	for _, d := range dialogues {
		for _, proto := range []string{"", "HELLO 3"} {
			if proto != "" && !speaksRESP3(d) {
				continue
			}
			want := d.answers(t, "unix", redisSocket, proto)
			got := d.answers(t, "tcp", weirAddr, proto)
			assert.Equal(t, want, asRedisSays(got, want), "%s %q", proto, d.lines)
		}
	}
}

// asRedisSays cuts off the part of weir's errors that follows the text of Redis. That part states the accepted values.
func asRedisSays(got, want []string) []string {
	short := slices.Clone(got)
	for i := range min(len(got), len(want)) {
		text := strings.TrimSuffix(want[i], "\r\n")
		last := text[strings.LastIndexByte(text, '\n')+1:] // EXEC answers with an array
		if strings.HasPrefix(last, "-") && strings.HasPrefix(got[i], text+": ") {
			short[i] = want[i]
		}
	}
	return short
}

// speaksRESP3 reports whether a dialogue may be repeated in RESP3. A dialogue with HELLO or AUTH may not, because it
// chooses the protocol itself, or logs in itself.
func speaksRESP3(d dialogue) bool {
	return !slices.ContainsFunc(
		d.lines, func(line string) bool { return strings.Contains(line, "HELLO") || strings.Contains(line, "AUTH") })
}

// startRedis starts a Redis on a Unix socket. It ends with the test.
func startRedis(t *testing.T, args ...string) (socket string) {
	t.Helper()
	path := tool(t, "redis-server", "redis-server")
	version, err := exec.Command(path, "--version").Output()
	require.NoError(t, err)
	if !strings.Contains(string(version), " v=7.") {
		t.Skipf("SKIPPED: weir answers as Redis 7, this is %s", version)
	}
	dir := t.TempDir()
	socket = filepath.Join(dir, "s")
	cmd := exec.Command(
		path, append([]string{"--port", "0", "--unixsocket", socket, "--save", "", "--dir", dir}, args...)...)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	require.Eventually(t, func() bool {
		c, err := net.Dial("unix", socket)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}, testWait, testWait/1000)
	return socket
}

// answers sends all lines at once, followed by QUIT. It returns the replies until the server closes the connection,
// reduced to the parts that must equal those of Redis.
func (d dialogue) answers(t *testing.T, network, addr, proto string) []string {
	t.Helper()
	c, err := net.Dial(network, addr)
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	require.NoError(t, c.SetDeadline(time.Now().Add(testWait)))
	in := bufio.NewReader(c)
	if proto != "" {
		_, err = io.WriteString(c, proto+"\r\n")
		require.NoError(t, err)
		_, err = readFrame(in)
		require.NoError(t, err)
	}
	_, err = io.WriteString(c, strings.Join(d.lines, "\r\n")+"\r\nQUIT\r\n")
	require.NoError(t, err)
	var all []string
	for {
		f, err := readFrame(in)
		if err != nil {
			require.ErrorIs(t, err, io.EOF, "after %q", all)
			return all
		}
		all = append(all, d.same.part(f))
	}
}

// frame is one reply: its bytes and, of an aggregate, its elements.
type frame struct {
	raw      string
	elements []frame
}

func readFrame(in *bufio.Reader) (frame, error) {
	line, err := in.ReadString('\n')
	f := frame{raw: line}
	if err != nil {
		return f, err
	}
	n, _ := strconv.Atoi(strings.TrimRight(line[1:], "\r\n"))
	switch line[0] {
	case '$', '=':
		if n < 0 {
			break
		}
		body := make([]byte, n+len("\r\n"))
		_, err = io.ReadFull(in, body)
		f.raw += string(body)
	case '%':
		n *= 2
		fallthrough
	case '*', '~', '>':
		for i := 0; i < n && err == nil; i++ {
			var e frame
			e, err = readFrame(in)
			f.raw += e.raw
			f.elements = append(f.elements, e)
		}
	}
	return f, err
}

// part returns the part of a reply that must equal that of Redis.
func (s sameness) part(f frame) string {
	word, _, _ := strings.Cut(f.raw, " ")
	switch {
	case s == exactly:
		return f.raw
	case s == byFields && len(f.elements) > 0:
		names := f.raw[:1]
		for i := 0; i < len(f.elements); i += 2 {
			names += f.elements[i].raw
		}
		return names
	case f.raw[0] == '-':
		return word
	}
	return f.raw[:1]
}
