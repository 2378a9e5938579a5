package chaos

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestReadReply(t *testing.T) {
	for text, want := range map[string]any{
		"+OK\r\n":                               "OK",
		"-TRYAGAIN later\r\n":                   ErrorReply("TRYAGAIN later"),
		":-5\r\n":                               int64(-5),
		"$3\r\na\r\n\r\n":                       "a\r\n",
		"$-1\r\n":                               nil,
		"*-1\r\n":                               nil,
		"*3\r\n:1\r\n$1\r\nx\r\n*1\r\n+y\r\n":   []any{int64(1), "x", []any{"y"}},
		"*1\r\n-UNKNOWN\r\n":                    []any{ErrorReply("UNKNOWN")},
		"*5\r\n:1\r\n:2\r\n:0\r\n:-1\r\n:9\r\n": []any{int64(1), int64(2), int64(0), int64(-1), int64(9)},
	} {
		got, err := readReply(bufio.NewReader(strings.NewReader(text)))
		require.NoError(t, err, "%q", text)
		require.Equal(t, want, got, "%q", text)
	}
	for _, text := range []string{"x\r\n", ":one\r\n", "$-2\r\n", "*9999999999\r\n", "+OK\n", "?1\r\n"} {
		_, err := readReply(bufio.NewReader(strings.NewReader(text)))
		require.ErrorIs(t, err, errProtocol, "%q", text)
	}
	for _, text := range []string{"", "$5\r\nab", "*2\r\n:1\r\n"} {
		_, err := readReply(bufio.NewReader(strings.NewReader(text)))
		require.True(t, errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF), "%q: %v", text, err)
	}
}

func TestClassify(t *testing.T) {
	for name, c := range map[string]struct {
		reply any
		err   error
		want  Outcome
	}{
		"a decision":       {reply: []any{int64(1)}, want: Answered},
		"TRYAGAIN":         {reply: ErrorReply("TRYAGAIN not applied, send it again"), want: NotApplied},
		"MOVED":            {reply: ErrorReply("MOVED 1 127.0.0.1:7000"), want: NotApplied},
		"CLUSTERDOWN":      {reply: ErrorReply("CLUSTERDOWN no quorum"), want: NotApplied},
		"OVERLOADED":       {reply: ErrorReply("OVERLOADED too many"), want: NotApplied},
		"UNKNOWN":          {reply: ErrorReply("UNKNOWN it may have been counted"), want: Unknown},
		"any other error":  {reply: ErrorReply("WRONGTYPE the key"), want: Refused},
		"no answer":        {err: os.ErrDeadlineExceeded, want: Unknown},
		"closed":           {err: io.EOF, want: Unknown},
		"a broken reply":   {err: errProtocol, want: Unknown},
		"never sent":       {err: errors.Join(errNotSent, os.ErrDeadlineExceeded), want: NotApplied},
		"a prefix of none": {reply: ErrorReply("TRYAGAINST"), want: Refused},
	} {
		got, _ := classify(c.reply, c.err)
		require.Equal(t, c.want, got, name)
	}
}

func TestDialToNobodyIsNotSent(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := ln.Addr().String()
	require.NoError(t, ln.Close())
	_, err = Dial(addr, time.Second)
	require.ErrorIs(t, err, errNotSent)
}
