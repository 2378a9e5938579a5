package clienttest

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/redcon"
)

// TestStringsAsRedisKeepsThem sends the same random commands to weir and to a Redis 7: commands on strings and on their
// times to live, and scripts that compare and swap. The test sets the clocks of both. Every byte of the replies must be
// equal.
func TestStringsAsRedisKeepsThem(t *testing.T) {
	commands := 100_000
	if testing.Short() {
		commands = 10_000
	}
	seed := uint64(time.Now().UnixNano())
	if fixed := os.Getenv("WEIRTEST_SEED"); fixed != "" {
		seed, _ = strconv.ParseUint(fixed, 10, 64)
	}
	g := &stringSource{Rand: rand.New(rand.NewPCG(seed, 1))}
	both := newClockedPair(t)
	sent := 0
	for sent < commands {
		g.nowMs = both.nowMs
		batch := g.batch()
		want, got := both.redis.say(t, batch, false), both.weir.say(t, batch, true)
		for i := range batch {
			if !sameReply(got[i], want[i]) && !documented(batch[i], got[i], want[i]) {
				t.Fatalf("seed %d, command %d at %d ms: %s\nredis: %q\nweir:  %q\nbefore it:\n%s", seed, sent+i,
					both.nowMs, batch[i], want[i], got[i], both.last(batch[:i]))
			}
		}
		both.keep(batch)
		sent += len(batch)
		both.advance(t, int64(g.IntN(1+g.IntN(2500))))
	}
	t.Logf("%d commands, seed %d: 0 differences", sent, seed)
}

// sameReply compares the replies of weir and of Redis. An error of weir may continue after the text of Redis.
func sameReply(got, want string) bool {
	return got == want || want[0] == '-' && strings.HasPrefix(got, strings.TrimSuffix(want, "\r\n")+": ")
}

// documented reports whether docs/scripts.md describes the difference: weir's GETEX refuses an invalid time even if
// the key does not exist.
func documented(c call, got, want string) bool {
	bad := strings.HasPrefix(got, "-ERR invalid expire time in 'getex'") ||
		strings.HasPrefix(got, "-ERR value is not an integer")
	return strings.EqualFold(c.args[0], "GETEX") && want == "$-1\r\n" && bad
}

// call is one command. weir gets a script by its published SHA-1. Redis gets the test's own Lua with the same effect.
type call struct {
	args   []string
	script string // the Lua that does in Redis what EVALSHA of args does in weir
}

func (c call) String() string { return fmt.Sprintf("%q", c.args) }

func (c call) to(weir bool) []string {
	if c.script == "" || weir {
		return c.args
	}
	return append([]string{"EVAL", c.script}, c.args[2:]...)
}

// stringSource draws random commands on a few keys.
type stringSource struct {
	*rand.Rand
	nowMs int64
}

// stringCalls are the commands, with letters for random parts. k is a key, v a value and n a number. s and m are a
// number of seconds and of milliseconds, S and M a Unix time in these units. q and p are like s and m, but always
// valid. A word of stringOptions stands for one of its options.
var stringCalls = strings.Split(`SET k v|SET k v|SET k v ?set|SET k v ?set ?set|SET k v ?set ?set ?set|SETEX k s v|PSETEX k m v|SETNX k v|GETSET k v|GETDEL k|
GETEX k|GETEX k ?getex|GETEX k ?getex ?getex|GET k|GET k|MGET k|MGET k k k|STRLEN k|APPEND k v|DEL k|DEL k k|EXISTS k|EXISTS k k|TYPE k|
EXPIRE k s|EXPIRE k s ?expire|EXPIRE k s ?expire ?expire|PEXPIRE k m|PEXPIRE k m ?expire|EXPIREAT k S ?expire|EXPIREAT k S|PEXPIREAT k M|
PEXPIREAT k M ?expire|PERSIST k|TTL k|PTTL k|INCR k|DECR k|INCRBY k n|DECRBY k n|SET k|GET|SETEX k s|MGET|GETEX|EXPIRE k|PERSIST k k|
SET k v EX|SET k v PX m NX GET|SET k v XX GET KEEPTTL`, "|")

var stringOptions = map[string][]string{
	"?set":    {"NX", "XX", "GET", "KEEPTTL", "EX s", "PX m", "EXAT S", "PXAT M", "nx", "keepttl", "PERSIST", "EX"},
	"?getex":  {"EX s", "PX m", "EXAT S", "PXAT M", "PERSIST", "px m", "NX"},
	"?expire": {"NX", "XX", "GT", "LT", "gt", "GET"},
}

var (
	stringKeys   = []string{"a", "b", "c", "d", "e", "f"}
	stringValues = []string{"", "0", "1", "-1", "-0", "07", "+5", " 1", "12 ", "abc", "-17", "3.5", "1e3",
		"x\x00\r\n\xff", "abcdefghijklmnopqrstuvwxyz", "value"}
	oddTimes = []string{"0", "-1", "-100", "abc", "", "1.5", "010", "-0", "9223372036854775808", "18446744073709551616"}
	// longTimes overflow as seconds, or when the current time is added. draw uses none for M: Redis accepts them as a
	// Unix time in milliseconds, while weir refuses times that are more than 2^53 ms away.
	longTimes = []string{"9223372036854775807", "-9223372036854775808"}
)

// queuedCalls are the commands of transactions. All of them have valid arguments, because weir refuses an invalid
// command when it is queued, and Redis when it is executed.
var queuedCalls = []string{"SET k v", "SET k v NX GET", "SET k v XX KEEPTTL", "SET k v PX p", "GET k", "GETDEL k",
	"GETSET k v", "APPEND k v",
	"STRLEN k", "MGET k k", "SETNX k v", "SETEX k q v", "EXPIRE k q GT", "PEXPIRE k p NX",
	"PERSIST k", "INCR k", "DEL k"}

// batch draws some commands, or a transaction of some commands.
func (g *stringSource) batch() (batch []call) {
	n := 1 + g.IntN(40)
	if g.IntN(5) > 0 {
		for range n {
			batch = append(batch, g.next(stringCalls))
		}
		return batch
	}
	batch = append(batch, call{args: []string{"MULTI"}})
	for range n {
		batch = append(batch, g.next(queuedCalls))
	}
	return append(batch, call{args: []string{"EXEC"}})
}

func (g *stringSource) next(from []string) call {
	if g.IntN(8) == 0 {
		return g.script()
	}
	line := strings.TrimSpace(from[g.IntN(len(from))])
	var args []string
	for _, word := range strings.Fields(line) {
		if options := stringOptions[word]; options != nil {
			for _, part := range strings.Fields(options[g.IntN(len(options))]) {
				args = append(args, g.draw(part))
			}
			continue
		}
		args = append(args, g.draw(word))
	}
	return call{args: args}
}

func (g *stringSource) draw(word string) string {
	odd := g.IntN(25) == 0
	switch {
	case word == "k":
		return stringKeys[g.IntN(len(stringKeys))]
	case word == "p":
		return strconv.Itoa(1 + g.IntN(5000))
	case word == "q":
		return strconv.Itoa(1 + g.IntN(5))
	case word == "v":
		return stringValues[g.IntN(len(stringValues))]
	case len(word) > 1 || word == "":
		return word
	case odd && word != "n" && word != "M" && g.IntN(4) == 0:
		return longTimes[g.IntN(len(longTimes))]
	case odd:
		return oddTimes[g.IntN(len(oddTimes))]
	}
	near := g.Int64N(6000) - 1000*g.Int64N(2)
	if g.IntN(4) == 0 {
		near = g.Int64N(3) - 1 // a key still exists in the millisecond of its expiry
	}
	switch word {
	case "n":
		return strconv.Itoa(g.IntN(2001) - 1000)
	case "s":
		return strconv.Itoa(g.IntN(8) - 1)
	case "m":
		return strconv.FormatInt(near, 10)
	case "S":
		return strconv.FormatInt(g.nowMs/1000+g.Int64N(9)-2, 10)
	default:
		return strconv.FormatInt(g.nowMs+near, 10)
	}
}

// swaps are the scripts: the SHA-1 of the published text, letters for the arguments as in stringCalls, and the test's
// own Lua with the same effect.
var swaps = []struct{ sha1, args, lua string }{
	{"9450de540565d89de15092a716555821601f128b", "v v",
		`local is = redis.call('GET', KEYS[1]) if is ~= ARGV[1] then return 0 end redis.call('SET', KEYS[1], ARGV[2]) return 1`},
	{"535b2fd00a12a23393fe15cf99599ecc51cd3007", "v v p",
		`local is = redis.call('GET', KEYS[1]) if is ~= ARGV[1] then return 0 end redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) return 1`},
	{"1fed031c105d7c0315b3fc2e4a75e697247264f5", "v", `return redis.call('SETNX', KEYS[1], ARGV[1])`},
	{"c0569386b0382069581dfaa1a8d241140bc0eeb4", "v p",
		`local done = redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2], 'NX') return done and 1 or 0`},
	{"6cad3abd039c32c68cc4638ca3513684cd302a58", "v",
		`local done = redis.call('SET', KEYS[1], ARGV[1], 'NX') return done`},
	{"70b34c1df15244e38adcc5356cabe59b8aca7254", "v p",
		`local done = redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2], 'NX') return done`},
	{"ebd682e30de074a6919bde872b507734c7c3ebe5", "v v q",
		`local is = redis.call('GET', KEYS[1]) if not is then return redis.error_reply('key does not exist') end ` +
			`if is ~= ARGV[1] then return 0 end redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[3]) return 1`},
	{"a08c9c69b7c07ae2485190873b90d128a23e502d", "v q",
		`local done = redis.call('SET', KEYS[1], ARGV[1], 'NX', 'EX', ARGV[2]) return done`},
	{"647c65a442733a1aa440f99908d249d13b4d6c4a", "v",
		`local is = redis.call('GET', KEYS[1]) if is ~= ARGV[1] then return 0 end return redis.call('DEL', KEYS[1])`},
}

func (g *stringSource) script() call {
	swap := swaps[g.IntN(len(swaps))]
	args := []string{"EVALSHA", swap.sha1, "1", g.draw("k")}
	for _, word := range strings.Fields(swap.args) {
		args = append(args, g.draw(word))
	}
	return call{args: args, script: swap.lua}
}

// clockedPair is a Redis and a weir whose clocks show the same time.
type clockedPair struct {
	redis, weir *talker
	nowMs       int64
	clock       *os.File
	recent      []call
}

type talker struct {
	c  net.Conn
	in *bufio.Reader
}

func newClockedPair(t *testing.T) *clockedPair {
	dir := t.TempDir()
	p := &clockedPair{}
	var err error
	p.clock, err = os.Create(filepath.Join(dir, "clock"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.clock.Close() })
	p.weir = talkTo(t, "tcp", startWeir(t).addr)
	now := p.weir.ask(t, "DEBUG", "CLOCK", "GET")
	limiterMs, err := strconv.ParseInt(now[1:len(now)-2], 10, 64)
	require.NoError(t, err)
	require.Equal(t, "+OK\r\n", p.weir.ask(t, "DEBUG", "CLOCK", "SET", strconv.FormatInt(limiterMs+1, 10)))
	var sec, us int64
	_, err = fmt.Sscanf(strings.NewReplacer("\r\n", " ", "*2", "", "$10", "", "$6", "", "$5", "", "$4", "", "$3", "",
		"$1", "").Replace(p.weir.ask(t, "TIME")), "%d %d", &sec, &us)
	require.NoError(t, err)
	require.Zero(t, us%1000, "the wall clock of a test clock shows whole milliseconds")
	p.nowMs = sec*1000 + us/1000
	p.set(t)
	shim := filepath.Join(dir, "clock.so")
	built, err := exec.Command(tool(t, "cc", "gcc"), "-shared", "-fPIC", "-O1", "-o", shim, "redisclock/clock.c",
		"-ldl").CombinedOutput()
	require.NoError(t, err, "%s", built)
	t.Setenv("LD_PRELOAD", shim)
	t.Setenv("WEIRTEST_CLOCK", p.clock.Name())
	socket := startRedis(t)
	require.NoError(t, os.Unsetenv("LD_PRELOAD"))
	p.redis = talkTo(t, "unix", socket)
	return p
}

// set makes the clock of Redis show nowMs.
func (p *clockedPair) set(t *testing.T) {
	_, err := p.clock.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(p.nowMs*1000)), 0)
	require.NoError(t, err)
}

func (p *clockedPair) advance(t *testing.T, ms int64) {
	p.nowMs += ms
	p.set(t)
	require.Equal(t, "+OK\r\n", p.weir.ask(t, "DEBUG", "CLOCK", "ADVANCE", strconv.FormatInt(ms, 10)))
}

// keep records the last calls, for the report of a difference.
func (p *clockedPair) keep(batch []call) {
	p.recent = append(p.recent, batch...)
	p.recent = p.recent[max(len(p.recent)-30, 0):]
}

func (p *clockedPair) last(more []call) string {
	var b strings.Builder
	for _, c := range append(p.recent, more...) {
		fmt.Fprintln(&b, c)
	}
	return b.String()
}

func talkTo(t *testing.T, network, addr string) *talker {
	c, err := net.Dial(network, addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return &talker{c, bufio.NewReader(c)}
}

// say sends all calls in one write and returns the replies.
func (k *talker) say(t *testing.T, batch []call, weir bool) []string {
	t.Helper()
	var out []byte
	for _, c := range batch {
		args := c.to(weir)
		out = redcon.AppendArray(out, len(args))
		for _, a := range args {
			out = redcon.AppendBulkString(out, a)
		}
	}
	require.NoError(t, k.c.SetDeadline(time.Now().Add(testWait)))
	_, err := k.c.Write(out)
	require.NoError(t, err)
	replies := make([]string, len(batch))
	for i := range replies {
		f, err := readFrame(k.in)
		require.NoError(t, err)
		replies[i] = f.raw
	}
	return replies
}

func (k *talker) ask(t *testing.T, args ...string) string {
	t.Helper()
	return k.say(t, []call{{args: args}}, true)[0]
}
