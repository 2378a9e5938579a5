package bench

import (
	"bufio"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	yes = "*5\r\n:1\r\n:19\r\n:0\r\n:100\r\n:20\r\n"
	no  = "*5\r\n:0\r\n:0\r\n:-1\r\n:100\r\n:20\r\n"
)

func TestReadAnswers(t *testing.T) {
	in := bufio.NewReader(strings.NewReader(yes + no + "-UNKNOWN it may have been counted\r\n-TRYAGAIN no leader\r\n" + yes + yes))
	got, err := readAnswers(in, 5)
	require.NoError(t, err)
	require.Equal(t, tally{answers: 5, admitted: 2, errors: 2, said: "UNKNOWN it may have been counted"}, got)
	got, err = readAnswers(in, 1)
	require.NoError(t, err)
	require.Equal(t, tally{answers: 1, admitted: 1}, got, "it reads no further than asked")
	_, err = readAnswers(in, 1)
	require.ErrorIs(t, err, io.EOF)
}

func TestReadAnswersRefuses(t *testing.T) {
	for _, in := range []string{
		"+OK\r\n", "\r\n", "\n", "x\n", ":1\r\n", "$-1\r\n", "*\r\n", "*0\r\n", "*-1\r\n", "*17\r\n", "*x\r\n",
		"*1\r\n:2\r\n", "*1\r\n:10\r\n", "*1\r\n$1\r\n1\r\n", "*2\r\n:1\r\n+1\r\n", strings.Repeat("x", 5000) + "\r\n",
	} {
		_, err := readAnswers(bufio.NewReader(strings.NewReader(in)), 1)
		if len(in) > 4096 {
			require.ErrorIs(t, err, bufio.ErrBufferFull)
		} else {
			require.ErrorIs(t, err, ErrNotADecision, "%q", in)
		}
	}
}
