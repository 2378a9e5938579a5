package resp

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/server/resp/resptest"
)

// framed is the result of framing a stream.
type framed struct {
	commands [][]string
	err      error
	left     int // bytes of an unfinished command
}

// frameIn frames a stream that arrives in pieces. The pieces end at the given offsets, and at the end of the stream.
// The window moves in memory with every piece, as a read buffer may.
func frameIn(limits *Limits, stream string, ends ...int) framed {
	var got framed
	f := Framer{Limits: limits}
	var window []byte
	at := 0
	for _, end := range append(ends, len(stream)) {
		window = append(bytes.Clone(window), stream[at:end]...)
		at = end
		for {
			args, used, err := f.Next(window)
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

func TestFrames(t *testing.T) {
	many := strings.Split(strings.Repeat("x ", MaxArgs), " ")[:MaxArgs]
	for name, c := range map[string]struct {
		stream string
		want   [][]string
	}{
		"one":             {"*1\r\n$4\r\nPING\r\n", [][]string{{"PING"}}},
		"binary argument": {resptest.Multibulk("ECHO", "a\r\n\x00b"), [][]string{{"ECHO", "a\r\n\x00b"}}},
		"empty argument":  {resptest.Multibulk("ECHO", ""), [][]string{{"ECHO", ""}}},
		"empty name":      {resptest.Multibulk(""), [][]string{{""}}},
		"pipeline": {resptest.Multibulk("A") + resptest.Multibulk("B", "c"),
			[][]string{{"A"}, {"B", "c"}}},
		"most arguments":    {resptest.Multibulk(many...), [][]string{many}},
		"no arguments":      {"*0\r\n*-1\r\n*-7\r\n" + resptest.Multibulk("A"), [][]string{{"A"}}},
		"empty lines":       {"\r\n\n  \r\n" + resptest.Multibulk("A") + "\r\n", [][]string{{"A"}}},
		"inline":            {"PING\r\n", [][]string{{"PING"}}},
		"inline without CR": {"PING\nPING\n", [][]string{{"PING"}, {"PING"}}},
		"inline blanks":     {"  SET \t a\v b  \r\n", [][]string{{"SET", "a", "b"}}},
		"inline between": {resptest.Multibulk("A") + "B c\r\n" + resptest.Multibulk("D"),
			[][]string{{"A"}, {"B", "c"}, {"D"}}},
		"inline double quotes": {`ECHO "a b\n\r\t\b\a\"\\\x41\x4g\q"` + "\r\n",
			[][]string{{"ECHO", "a b\n\r\t\b\a\"\\Ax4gq"}}},
		"inline single quotes":   {`ECHO 'a "b" \' \n'` + "\n", [][]string{{"ECHO", `a "b" ' \n`}}},
		"inline empty quotes":    {`ECHO "" ''` + "\n", [][]string{{"ECHO", "", ""}}},
		"inline quote in a word": {`ECHO a"b c" d` + "\n", [][]string{{"ECHO", "ab c", "d"}}},
		"inline star inside":     {"A *1\r\n", [][]string{{"A", "*1"}}},
		"post in a multibulk":    {resptest.Multibulk("POST", "/"), [][]string{{"POST", "/"}}},
		"longest inline": {strings.Repeat("x", maxInlineBytes-1) + "\n",
			[][]string{{strings.Repeat("x", maxInlineBytes-1)}}},
		"GET of a key like HTTP/": {"GET HTTP/1.1\r\n", [][]string{{"GET", "HTTP/1.1"}}},
		"nineteen digits of none": {"*-9223372036854775807\r\n" + resptest.Multibulk("A"), [][]string{{"A"}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := frameIn(OpenLimits(64<<10), c.stream)
			require.NoError(t, got.err)
			assert.Equal(t, c.want, got.commands)
			assert.Zero(t, got.left)
		})
	}
}

func TestHostileFrames(t *testing.T) {
	for name, c := range resptest.Hostile {
		t.Run(name, func(t *testing.T) {
			got := frameIn(OpenLimits(64<<10), resptest.Multibulk("PING")+c.Stream)
			assert.EqualError(t, got.err, c.Err)
			assert.Equal(t, [][]string{{"PING"}}, got.commands)
		})
	}
}

func TestFramesBeforeAuth(t *testing.T) {
	kilobyte := strings.Repeat("x", PreAuthBulkBytes)
	ten := strings.Split("AUTH 2 3 4 5 6 7 8 9 10", " ")
	for name, c := range map[string]struct {
		stream, err string
	}{
		"ten arguments": {resptest.Multibulk(ten...), ""},
		"ten kilobytes": {resptest.Multibulk(kilobyte, kilobyte, kilobyte, kilobyte, kilobyte, kilobyte,
			kilobyte, kilobyte, kilobyte, kilobyte), ""},
		"eleven arguments":       {resptest.Multibulk(append(ten, "11")...), "unauthenticated multibulk length"},
		"eleven words":           {strings.Join(ten, " ") + " 11\n", "unauthenticated multibulk length"},
		"more than a kilobyte":   {"*2\r\n$4\r\nAUTH\r\n$1025\r\n", "unauthenticated bulk length"},
		"a word of more than it": {"AUTH " + kilobyte + "x\n", "unauthenticated bulk length"},
	} {
		t.Run(name, func(t *testing.T) {
			got := frameIn(PreAuthLimits(), c.stream)
			if c.err == "" {
				assert.NoError(t, got.err)
				assert.Len(t, got.commands, 1)
			} else {
				assert.EqualError(t, got.err, c.err)
			}
		})
	}
}

// TestAnyDivisionOfAStreamGivesTheSameCommands checks that any division of a stream into reads gives the same commands
// and the same error.
func TestAnyDivisionOfAStreamGivesTheSameCommands(t *testing.T) {
	streams := []string{
		resptest.Multibulk("RL.TOKENBUCKET", "user:42", "10/s", "20") + "*0\r\nPING\r\n\r\n" +
			resptest.Multibulk("ECHO", "") + `ECHO "a\x41 b" 'c'` + "\n" + resptest.Multibulk("A", "b\r\n$3\r\n*1\r\n"),
	}
	for _, c := range resptest.Hostile {
		if len(c.Stream) < 5000 {
			streams = append(streams, resptest.Multibulk("PING")+c.Stream)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for _, stream := range streams {
		whole := frameIn(OpenLimits(64<<10), stream)
		everyByte := make([]int, len(stream))
		for i := range everyByte {
			everyByte[i] = i
			assert.Equal(t, whole, frameIn(OpenLimits(64<<10), stream, i), "%q cut at %d", stream, i)
		}
		assert.Equal(t, whole, frameIn(OpenLimits(64<<10), stream, everyByte...), "%q byte by byte", stream)
		for range 50 {
			assert.Equal(t, whole, frameIn(OpenLimits(64<<10), stream, randomCuts(random, len(stream))...))
		}
	}
}

func randomCuts(random *rand.Rand, n int) (cuts []int) {
	for at := random.IntN(n + 1); at < n; at += 1 + random.IntN(20) {
		cuts = append(cuts, at)
	}
	return cuts
}

// TestACommandByteByByteCostsLinearWork checks that a command which arrives byte by byte costs linear work. The framer
// does not read bytes before pos again, so the test may overwrite them. Of an unfinished header it reads at most
// maxHeaderBytes again.
func TestACommandByteByByteCostsLinearWork(t *testing.T) {
	const argBytes = 1000
	stream := []byte(resptest.Multibulk(
		strings.Split(strings.Repeat(strings.Repeat("x", argBytes)+" ", 60), " ")[:60]...))
	f := Framer{Limits: OpenLimits(64 << 10)}
	spoilt := 0
	for end := 1; end < len(stream); end++ {
		args, used, err := f.Next(stream[:end:end])
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
	args, used, err := f.Next(stream)
	require.NoError(t, err)
	assert.Equal(t, len(stream), used)
	require.Len(t, args, 60)
	for _, arg := range args {
		assert.Len(t, arg, argBytes)
	}
}

func TestInlineDripIsLinear(t *testing.T) {
	line := []byte(strings.Repeat("word ", 800))
	f := Framer{Limits: OpenLimits(64 << 10)}
	for end := 1; end <= len(line); end++ {
		args, _, err := f.Next(line[:end])
		require.NoError(t, err)
		require.Nil(t, args)
		require.Equal(t, end, f.pos, "every byte is searched once")
	}
}

// TestDeclaredLengthsAllocateNothing checks that a length which is only declared allocates nothing.
func TestDeclaredLengthsAllocateNothing(t *testing.T) {
	stream := []byte("*1024\r\n$65536\r\n")
	var f Framer
	got := testing.AllocsPerRun(100, func() {
		f = Framer{Limits: f.Limits}
		if f.Limits == nil {
			f.Limits = OpenLimits(64 << 10)
		}
		if _, _, err := f.Next(stream); err != nil {
			t.Error(err)
		}
	})
	assert.Zero(t, got)
	assert.Zero(t, cap(f.args)+cap(f.spans))
}

func TestSteadyFramingAllocatesNothing(t *testing.T) {
	stream := []byte(strings.Repeat(resptest.Multibulk("RL.TOKENBUCKET", "user:42", "10/s", "20")+"PING\r\n", 100))
	f := Framer{Limits: OpenLimits(64 << 10)}
	commands := 0
	got := testing.AllocsPerRun(100, func() {
		for b := stream; ; commands++ {
			args, used, err := f.Next(b)
			if args == nil || err != nil {
				return
			}
			b = b[used:]
		}
	})
	assert.Zero(t, got)
	assert.Equal(t, 101*200, commands)
}

// TestFramerHoldsNoBuffer checks that between two reads a framer refers to no buffer: neither by the arguments that it
// returned, nor by those of an unfinished command.
func TestFramerHoldsNoBuffer(t *testing.T) {
	f := Framer{Limits: OpenLimits(64 << 10)}
	whole := resptest.Multibulk("a", "b", "c", "d")
	for _, stream := range []string{whole + whole, whole + whole[:len(whole)-3], "a b c\r\nd e"} {
		f = Framer{Limits: f.Limits, args: f.args}
		for b := []byte(stream); ; {
			args, used, err := f.Next(b)
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

// TestArgumentsCannotGrowIntoEachOther checks that an append to an argument does not overwrite the next argument.
func TestArgumentsCannotGrowIntoEachOther(t *testing.T) {
	for _, stream := range []string{resptest.Multibulk("a", "b"), "a b\n"} {
		f := Framer{Limits: OpenLimits(64 << 10)}
		args, _, err := f.Next([]byte(stream))
		require.NoError(t, err)
		_ = append(args[0], "overwritten"...)
		assert.Equal(t, "b", string(args[1]))
	}
}
