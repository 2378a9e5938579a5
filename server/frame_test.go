package server

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// framed is what a stream of bytes was cut into.
type framed struct {
	commands [][]string
	err      error
	left     int // bytes of an unfinished command
}

// frameIn cuts a stream that arrives in pieces which end at the given offsets.
// The window moves at every piece, as a read buffer may.
func frameIn(limits *frameLimits, stream string, ends ...int) framed {
	var got framed
	f := framer{limits: limits}
	var window []byte
	at := 0
	for _, end := range append(ends, len(stream)) {
		window = append(bytes.Clone(window), stream[at:end]...)
		at = end
		for {
			args, used, err := f.next(window)
			window = window[used:]
			if err != nil {
				got.err = err
				return got
			}
			if args == nil {
				break
			}
			command := make([]string, len(args))
			for i, arg := range args {
				command[i] = string(arg)
			}
			got.commands = append(got.commands, command)
		}
	}
	got.left = len(window)
	return got
}

func multibulk(args ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, arg := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(arg), arg)
	}
	return b.String()
}

func TestFrames(t *testing.T) {
	many := strings.Split(strings.Repeat("x ", maxArgs), " ")[:maxArgs]
	for name, c := range map[string]struct {
		stream string
		want   [][]string
	}{
		"one":                     {"*1\r\n$4\r\nPING\r\n", [][]string{{"PING"}}},
		"binary argument":         {multibulk("ECHO", "a\r\n\x00b"), [][]string{{"ECHO", "a\r\n\x00b"}}},
		"empty argument":          {multibulk("ECHO", ""), [][]string{{"ECHO", ""}}},
		"empty name":              {multibulk(""), [][]string{{""}}},
		"pipeline":                {multibulk("A") + multibulk("B", "c"), [][]string{{"A"}, {"B", "c"}}},
		"most arguments":          {multibulk(many...), [][]string{many}},
		"no arguments":            {"*0\r\n*-1\r\n*-7\r\n" + multibulk("A"), [][]string{{"A"}}},
		"empty lines":             {"\r\n\n  \r\n" + multibulk("A") + "\r\n", [][]string{{"A"}}},
		"inline":                  {"PING\r\n", [][]string{{"PING"}}},
		"inline without CR":       {"PING\nPING\n", [][]string{{"PING"}, {"PING"}}},
		"inline blanks":           {"  SET \t a\v b  \r\n", [][]string{{"SET", "a", "b"}}},
		"inline between":          {multibulk("A") + "B c\r\n" + multibulk("D"), [][]string{{"A"}, {"B", "c"}, {"D"}}},
		"inline double quotes":    {`ECHO "a b\n\r\t\b\a\"\\\x41\x4g\q"` + "\r\n", [][]string{{"ECHO", "a b\n\r\t\b\a\"\\Ax4gq"}}},
		"inline single quotes":    {`ECHO 'a "b" \' \n'` + "\n", [][]string{{"ECHO", `a "b" ' \n`}}},
		"inline empty quotes":     {`ECHO "" ''` + "\n", [][]string{{"ECHO", "", ""}}},
		"inline quote in a word":  {`ECHO a"b c" d` + "\n", [][]string{{"ECHO", "ab c", "d"}}},
		"inline star inside":      {"A *1\r\n", [][]string{{"A", "*1"}}},
		"post in a multibulk":     {multibulk("POST", "/"), [][]string{{"POST", "/"}}},
		"longest inline":          {strings.Repeat("x", maxInlineBytes-1) + "\n", [][]string{{strings.Repeat("x", maxInlineBytes-1)}}},
		"GET of a key like HTTP/": {"GET HTTP/1.1\r\n", [][]string{{"GET", "HTTP/1.1"}}},
		"nineteen digits of none": {"*-9223372036854775807\r\n" + multibulk("A"), [][]string{{"A"}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := frameIn(openLimits(64<<10), c.stream)
			require.NoError(t, got.err)
			assert.Equal(t, c.want, got.commands)
			assert.Zero(t, got.left)
		})
	}
}

// hostileFrames are streams that must end in the error given, after the command
// in front of them was framed.
var hostileFrames = map[string]struct{ stream, err string }{
	"negative bulk":              {"*1\r\n$-2\r\n", "invalid bulk length"},
	"null bulk":                  {"*1\r\n$-1\r\n", "invalid bulk length"},
	"bulk of 2^63-1":             {"*1\r\n$9223372036854775807\r\nx\r\n", "invalid bulk length"},
	"bulk of 2^64+1":             {"*1\r\n$18446744073709551617\r\nx\r\n", "invalid bulk length"},
	"bulk of 1 GB":               {"*1\r\n$1000000000\r\n", "invalid bulk length"},
	"bulk one too long":          {"*1\r\n$65537\r\n", "invalid bulk length"},
	"bulk with a plus":           {"*1\r\n$+4\r\nPING\r\n", "invalid bulk length"},
	"bulk with a leading zero":   {"*1\r\n$04\r\nPING\r\n", "invalid bulk length"},
	"bulk with a space":          {"*1\r\n$ 4\r\nPING\r\n", "invalid bulk length"},
	"bulk without a number":      {"*1\r\n$\r\nPING\r\n", "invalid bulk length"},
	"bulk of one not a digit":    {"*1\r\n$:\r\n0123456789\r\n", "invalid bulk length"},
	"bulk of two, one no digit":  {"*1\r\n$1:\r\n01234567890123456789\r\n", "invalid bulk length"},
	"bulk header CR without LF":  {"*1\r\n$4\rxPING\r\n", "invalid bulk length"},
	"bulk header LF without CR":  {"*1\r\n$10x\n0123456789\r\n", "invalid bulk length"},
	"bulk LF without CR":         {"*1\r\n$4\r\nPINGx\n", "bulk string does not end in CRLF"},
	"bulk length without end":    {"*1\r\n$" + strings.Repeat("1", 100), "too big bulk count string"},
	"bulk longer than declared":  {"*1\r\n$3\r\nPING\r\n", "bulk string does not end in CRLF"},
	"bulk CR without LF":         {"*1\r\n$4\r\nPING\rx", "bulk string does not end in CRLF"},
	"count of 4 billion":         {"*4000000000\r\n", "invalid multibulk length"},
	"count of 2^63-1":            {"*9223372036854775807\r\n", "invalid multibulk length"},
	"count of 2^64+1":            {"*18446744073709551617\r\n$4\r\nPING\r\n", "invalid multibulk length"},
	"count of 10^19-1":           {"*9999999999999999999\r\n", "invalid multibulk length"},
	"count of minus 10^20":       {"*-100000000000000000000\r\n", "invalid multibulk length"},
	"count one too many":         {"*1025\r\n", "invalid multibulk length"},
	"count not a number":         {"*x\r\n", "invalid multibulk length"},
	"count missing":              {"*\r\n", "invalid multibulk length"},
	"count minus nothing":        {"*-\r\n", "invalid multibulk length"},
	"count minus zero":           {"*-0\r\n", "invalid multibulk length"},
	"count with LF only":         {"*1\n$4\nPING\n", "invalid multibulk length"},
	"count CR without LF":        {"*1\rx", "invalid multibulk length"},
	"count without end":          {"*" + strings.Repeat("1", 100), "too big mbulk count string"},
	"not a bulk":                 {"*1\r\n:1\r\n", "expected '$', got ':'"},
	"not even text":              {"*1\r\n\x00", "expected '$', got '?'"},
	"array in an array":          {"*1\r\n*1\r\n$1\r\na\r\n", "expected '$', got '*'"},
	"endless line":               {strings.Repeat("x", maxInlineBytes), "too big inline request"},
	"endless blanks":             {strings.Repeat(" ", 2*maxInlineBytes), "too big inline request"},
	"inline with 1025 words":     {strings.Repeat("x ", maxArgs+1) + "\n", "invalid multibulk length"},
	"open double quote":          {"ECHO \"a\n", "unbalanced quotes in request"},
	"open single quote":          {"ECHO 'a\n", "unbalanced quotes in request"},
	"open escape":                {"ECHO \"a\\\n", "unbalanced quotes in request"},
	"word behind a quote":        {"ECHO \"a\"b\n", "unbalanced quotes in request"},
	"word behind a single quote": {"ECHO 'a'b\n", "unbalanced quotes in request"},
	"HTTP POST":                  {"POST / HTTP/1.1\r\nHost: x\r\n", "HTTP request on a RESP port: its first line"},
	"HTTP GET":                   {"GET /page HTTP/1.1\r\nHost: x\r\n", "HTTP request on a RESP port: its first line"},
	"HTTP POST of Redis":         {"POST /\r\n", "HTTP request on a RESP port"},
	"HTTP header":                {"host: localhost\r\n", "HTTP request on a RESP port"},
	"many large arguments": {
		"*1000\r\n" + strings.Repeat("$65536\r\n"+strings.Repeat("x", 65536)+"\r\n", 17), "too big command",
	},
}

func TestHostileFrames(t *testing.T) {
	for name, c := range hostileFrames {
		t.Run(name, func(t *testing.T) {
			got := frameIn(openLimits(64<<10), multibulk("PING")+c.stream)
			assert.EqualError(t, got.err, c.err)
			assert.Equal(t, [][]string{{"PING"}}, got.commands)
		})
	}
}

func TestFramesBeforeAuth(t *testing.T) {
	kilobyte := strings.Repeat("x", preAuthBulkBytes)
	ten := strings.Split("AUTH 2 3 4 5 6 7 8 9 10", " ")
	for name, c := range map[string]struct {
		stream, err string
	}{
		"ten arguments":          {multibulk(ten...), ""},
		"ten kilobytes":          {multibulk(kilobyte, kilobyte, kilobyte, kilobyte, kilobyte, kilobyte, kilobyte, kilobyte, kilobyte, kilobyte), ""},
		"eleven arguments":       {multibulk(append(ten, "11")...), "unauthenticated multibulk length"},
		"eleven words":           {strings.Join(ten, " ") + " 11\n", "unauthenticated multibulk length"},
		"more than a kilobyte":   {"*2\r\n$4\r\nAUTH\r\n$1025\r\n", "unauthenticated bulk length"},
		"a word of more than it": {"AUTH " + kilobyte + "x\n", "unauthenticated bulk length"},
	} {
		t.Run(name, func(t *testing.T) {
			got := frameIn(preAuthLimits(), c.stream)
			if c.err == "" {
				assert.NoError(t, got.err)
				assert.Len(t, got.commands, 1)
			} else {
				assert.EqualError(t, got.err, c.err)
			}
		})
	}
}

// Any division of a stream into reads gives the same commands and the same end.
func TestSplitsDoNotMatter(t *testing.T) {
	streams := []string{
		multibulk("RL.TOKENBUCKET", "user:42", "10/s", "20") + "*0\r\nPING\r\n\r\n" +
			multibulk("ECHO", "") + `ECHO "a\x41 b" 'c'` + "\n" + multibulk("A", "b\r\n$3\r\n*1\r\n"),
	}
	for _, c := range hostileFrames {
		if len(c.stream) < 5000 {
			streams = append(streams, multibulk("PING")+c.stream)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for _, stream := range streams {
		whole := frameIn(openLimits(64<<10), stream)
		everyByte := make([]int, len(stream))
		for i := range everyByte {
			everyByte[i] = i
			assert.Equal(t, whole, frameIn(openLimits(64<<10), stream, i), "%q cut at %d", stream, i)
		}
		assert.Equal(t, whole, frameIn(openLimits(64<<10), stream, everyByte...), "%q byte by byte", stream)
		for range 50 {
			assert.Equal(t, whole, frameIn(openLimits(64<<10), stream, randomCuts(random, len(stream))...))
		}
	}
}

func randomCuts(random *rand.Rand, n int) (cuts []int) {
	for at := random.IntN(n + 1); at < n; at += 1 + random.IntN(20) {
		cuts = append(cuts, at)
	}
	return cuts
}

// A slow drip costs linear work: what the framer has passed it does not look at
// again, so it may be overwritten, and it passes everything but a header of at
// most maxHeaderBytes that has not ended.
func TestDripIsLinear(t *testing.T) {
	const argBytes = 1000
	stream := []byte(multibulk(strings.Split(strings.Repeat(strings.Repeat("x", argBytes)+" ", 60), " ")[:60]...))
	f := framer{limits: openLimits(64 << 10)}
	spoilt := 0
	for end := 1; end < len(stream); end++ {
		args, used, err := f.next(stream[:end:end])
		require.NoError(t, err)
		require.Nil(t, args)
		require.Zero(t, used)
		if f.left > 0 {
			for ; spoilt < f.pos; spoilt++ {
				stream[spoilt] = '!'
			}
		}
		if f.bulk < 0 || f.left == 0 {
			require.LessOrEqual(t, end-f.pos, maxHeaderBytes)
		}
	}
	args, used, err := f.next(stream)
	require.NoError(t, err)
	assert.Equal(t, len(stream), used)
	require.Len(t, args, 60)
	for _, arg := range args {
		assert.Len(t, arg, argBytes)
	}
}

func TestInlineDripIsLinear(t *testing.T) {
	line := []byte(strings.Repeat("word ", 800))
	f := framer{limits: openLimits(64 << 10)}
	for end := 1; end <= len(line); end++ {
		args, _, err := f.next(line[:end])
		require.NoError(t, err)
		require.Nil(t, args)
		require.Equal(t, end, f.pos, "every byte is searched once")
	}
}

// A declared length alone allocates nothing.
func TestDeclaredLengthsAllocateNothing(t *testing.T) {
	stream := []byte("*1024\r\n$65536\r\n")
	var f framer
	got := testing.AllocsPerRun(100, func() {
		f = framer{limits: f.limits}
		if f.limits == nil {
			f.limits = openLimits(64 << 10)
		}
		if _, _, err := f.next(stream); err != nil {
			t.Error(err)
		}
	})
	assert.Zero(t, got)
	assert.Zero(t, cap(f.args)+cap(f.spans))
}

func TestSteadyFramingAllocatesNothing(t *testing.T) {
	stream := []byte(strings.Repeat(multibulk("RL.TOKENBUCKET", "user:42", "10/s", "20")+"PING\r\n", 100))
	f := framer{limits: openLimits(64 << 10)}
	commands := 0
	got := testing.AllocsPerRun(100, func() {
		for b := stream; ; commands++ {
			args, used, err := f.next(b)
			if args == nil || err != nil {
				return
			}
			b = b[used:]
		}
	})
	assert.Zero(t, got)
	assert.Equal(t, 101*200, commands)
}

// Between two reads a framer holds on to no buffer: neither by the arguments it
// has handed out nor by those it had begun.
func TestFramerHoldsNoBuffer(t *testing.T) {
	f := framer{limits: openLimits(64 << 10)}
	whole := multibulk("a", "b", "c", "d")
	for _, stream := range []string{whole + whole, whole + whole[:len(whole)-3], "a b c\r\nd e"} {
		f = framer{limits: f.limits, args: f.args}
		for b := []byte(stream); ; {
			args, used, err := f.next(b)
			require.NoError(t, err)
			if args == nil {
				break
			}
			b = b[used:]
		}
		for _, arg := range f.args[:cap(f.args)] {
			assert.Nil(t, arg, "%q", stream)
		}
	}
}

// An argument must not reach into the next one when it is appended to.
func TestArgumentsCannotGrowIntoEachOther(t *testing.T) {
	for _, stream := range []string{multibulk("a", "b"), "a b\n"} {
		f := framer{limits: openLimits(64 << 10)}
		args, _, err := f.next([]byte(stream))
		require.NoError(t, err)
		_ = append(args[0], "overwritten"...)
		assert.Equal(t, "b", string(args[1]))
	}
}

func BenchmarkFrame(b *testing.B) {
	stream := []byte(strings.Repeat(multibulk("RL.TOKENBUCKET", "key:000000012345", "10/s", "20"), 128))
	f := framer{limits: openLimits(64 << 10)}
	b.ReportAllocs()
	for n := 0; n < b.N; {
		for w := stream; len(w) > 0; n++ {
			_, used, _ := f.next(w)
			w = w[used:]
		}
	}
}
