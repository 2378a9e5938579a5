package bench

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/bench/connpoll"
)

const (
	yes = "*5\r\n:1\r\n:19\r\n:0\r\n:100\r\n:20\r\n"
	no  = "*5\r\n:0\r\n:0\r\n:-1\r\n:100\r\n:20\r\n"
)

// expected returns n replies of weir.
func expected(n int) []Reply {
	return mapOf(make([]struct{}, n), func(struct{}) Reply { return decisionReply(5) })
}

func TestEveryAnswerIsTallied(t *testing.T) {
	text := yes + no + "-UNKNOWN it may have been counted\r\n-TRYAGAIN no leader\r\n" + yes + yes
	for name, from := range map[string]io.Reader{
		"at once": strings.NewReader(text), "byte by byte": iotest.OneByteReader(strings.NewReader(text)),
		"with its end": iotest.DataErrReader(strings.NewReader(text)),
	} {
		in := newAnswers(from, 1)
		got, err := in.tallied(expected(5))
		require.NoError(t, err, name)
		require.Equal(t, tally{answers: 5, admitted: 2, errors: 2, said: "UNKNOWN it may have been counted"}, got, name)
		got, err = in.tallied(expected(1))
		require.NoError(t, err, name)
		require.Equal(t, tally{answers: 1, admitted: 1}, got, "%s: it reads no further than asked", name)
		_, err = in.tallied(expected(1))
		require.ErrorIs(t, err, io.EOF, name)
	}
}

func TestAnswersLongerThanTheBufferAreRead(t *testing.T) {
	long := strings.Repeat("x", 3000)
	in := newAnswers(strings.NewReader(fmt.Sprintf("-%s\r\n*2\r\n$%d\r\n%s\r\n:7\r\n:-42\r\n", long, len(long), long)),
		1)
	got, err := in.next()
	require.NoError(t, err)
	require.Equal(t, long, string(got.said))
	got, err = in.next()
	require.NoError(t, err)
	require.Equal(t, answer{kind: '*', elements: 2, first: [2]int64{0, 7}}, got)
	got, err = in.next()
	require.NoError(t, err)
	require.EqualValues(t, -42, got.first[0])
}

func TestWhatIsNoDecisionIsRefused(t *testing.T) {
	for _, in := range []string{
		"+OK\r\n", "\r\n", "\n", "x\n", ":1\r\n", ":\r\n", ":-\r\n", ":1x\r\n", "$-1\r\n", "$-2\r\n",
		"$x\r\n", "$9999999\r\n",
		"*\r\n", "*0\r\n", "*-1\r\n", "*17\r\n", "*x\r\n", "_\r\n", "*1\r\n:2\r\n",
		"*1\r\n*1\r\n:1\r\n", "*5\r\n-ERR\r\n",
		"*2\r\n:1\r\n+1\r\n", ":1234567890123456789\r\n", strings.Repeat("x", 5000) + "\r\n",
	} {
		_, err := newAnswers(strings.NewReader(in), 1).tallied(expected(1))
		require.ErrorIs(t, err, ErrNotADecision, "%.20q", in)
	}
}

func FuzzAnswers(f *testing.F) {
	for _, seed := range []string{yes, no, "-ERR x\r\n", "$3\r\nabc\r\n", "*2\r\n$1\r\na\r\n:1\r\n",
		"*16\r\n", "$4096\r\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		in := newAnswers(iotest.OneByteReader(strings.NewReader(text)), 1)
		for read := 0; ; read++ {
			if _, err := in.next(); err != nil {
				break
			}
			require.LessOrEqual(t, read, len(text), "each answer takes bytes")
		}
	})
}

func BenchmarkAnswers(b *testing.B) {
	const replies = 128
	text := strings.Repeat(yes, replies)
	from := strings.NewReader(text)
	in, want := newAnswers(from, replies), expected(replies)
	b.ReportAllocs()
	for b.Loop() {
		from.Reset(text)
		if _, err := in.tallied(want); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/replies, "ns/reply")
}

// TestATallyGoesOnWhereItWas checks that a tally continues after late replies.
func TestATallyGoesOnWhereItWas(t *testing.T) {
	text := yes + "-ERR no\r\n" + "*5\r\n:1\r\n$3\r\nabc\r\n+x\r\n:1\r\n:2\r\n" + no
	var r trickle
	a := newAnswers(&r, 1)
	var got tally
	for i := range text {
		require.ErrorIs(t, a.tallyOn(&got, expected(4)), connpoll.ErrNotYet)
		r.come = append(r.come, text[i])
	}
	require.NoError(t, a.tallyOn(&got, expected(4)))
	require.Equal(t, tally{answers: 4, admitted: 2, errors: 1, said: "ERR no"}, got)
}

// trickle is a reader of the bytes that have arrived. It returns connpoll.ErrNotYet without any.
type trickle struct{ come []byte }

func (r *trickle) Read(b []byte) (int, error) {
	if len(r.come) == 0 {
		return 0, connpoll.ErrNotYet
	}
	n := copy(b, r.come)
	r.come = r.come[n:]
	return n, nil
}
