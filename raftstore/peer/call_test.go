package peer

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestOneConnectionForAllCalls checks that a client uses one connection for all calls, and that Close closes it.
func TestOneConnectionForAllCalls(t *testing.T) {
	a, _ := open(t, "a", "one", "secret")
	var served atomic.Int32
	b := portOf(t, func(conn net.Conn, from Identity) {
		served.Add(1)
		ServeCalls(conn, from, func(Identity, byte, []byte) (byte, []byte) { return 1, nil })
	})
	client := NewClient(a, b.Addr().String(), "")
	client.Close() // the client has no connection
	client = NewClient(a, b.Addr().String(), "")
	for range 3 {
		_, _, err := client.Call(context.Background(), 1, make([]byte, 10))
		require.NoError(t, err, "without a known id any node may answer")
	}
	require.EqualValues(t, 1, served.Load())
	require.Equal(t, 1, a.held())
	client.Close()
	require.Zero(t, a.held())
	_, _, err := client.Call(context.Background(), 1, nil)
	require.ErrorIs(t, err, net.ErrClosed)
	require.ErrorIs(t, err, ErrNotSent)
	require.Zero(t, a.held())
	require.Eventually(t, func() bool { return b.held() == 0 }, patience, time.Millisecond)
}

func TestACallIsBounded(t *testing.T) {
	a, _ := open(t, "a", "one", "secret")
	b := serving(t, func(_ Identity, _ byte, payload []byte) (byte, []byte) { return 1, payload[:1] })
	defer b.Close()
	client := NewClient(a, b.Addr().String(), "b")
	defer client.Close()
	_, _, err := client.Call(context.Background(), 1, make([]byte, MaxPayload))
	require.NoError(t, err)
	_, _, err = client.Call(context.Background(), 1, make([]byte, MaxPayload+1))
	require.ErrorIs(t, err, ErrNotSent)
	require.ErrorContains(t, err, "at most 8388599")
}

// TestAnotherNodeAnswers checks that the connection to a node with another id is closed at once.
func TestAnotherNodeAnswers(t *testing.T) {
	a, _ := open(t, "a", "one", "secret")
	b, _ := open(t, "b", "one", "secret")
	client := NewClient(a, b.Addr().String(), "c")
	defer client.Close()
	_, _, err := client.Call(context.Background(), 1, nil)
	require.ErrorIs(t, err, ErrWrongID)
	require.ErrorIs(t, err, ErrNotSent)
	require.Zero(t, a.held())
	require.Eventually(t, func() bool { return b.held() == 0 }, patience, time.Millisecond)
}

// unwritable is a connection whose other side neither reads nor writes.
type unwritable struct{ net.Conn }

func (unwritable) Write([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }

func TestACallThatCannotBeWritten(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	l := newLink(unwritable{near})
	_, _, err := l.call(context.Background(), 1, nil)
	require.ErrorIs(t, err, ErrNoAnswer, "a part of the call may have arrived")
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.True(t, l.broken())
	<-l.ended
	_, _, err = l.call(context.Background(), 1, nil)
	require.ErrorIs(t, err, ErrNotSent)
}

// TestAnswersThatNobodyWaitsFor checks that an answer without a call, or a second answer, is ignored.
func TestAnswersThatNobodyWaitsFor(t *testing.T) {
	near, far := net.Pipe()
	l := newLink(near)
	done := make(chan error, 1)
	go func() {
		_, answer, err := l.call(context.Background(), 1, nil)
		if err == nil && string(answer) != "right" {
			err = errors.New("another answer")
		}
		done <- err
	}()
	_, err := io.ReadFull(far, make([]byte, 4+frameHead))
	require.NoError(t, err)
	for number, payload := range []string{"of none", "right", "of none"} {
		_, err := far.Write(appendFrame(nil, frame{number: uint64(number), payload: []byte(payload)}))
		require.NoError(t, err)
	}
	require.NoError(t, <-done)
	for range 3 {
		_, err = far.Write(appendFrame(nil, frame{number: 1}))
		require.NoError(t, err)
	}
	require.False(t, l.broken(), "the connection must survive an unexpected answer")
	far.Close()
	<-l.ended
	require.True(t, l.broken())
}
