package peer

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestACallerThatGivesUpEndsNoConnection checks that a call or message whose caller gives up leaves the connection to
// the others, because the other side is not late.
func TestACallerThatGivesUpEndsNoConnection(t *testing.T) {
	near, _ := openHub(t, "")
	far, _ := openHub(t, "")
	from, to := groupOf(t, near, 0, "a"), groupOf(t, far, 0, "b")
	asked := make(chan struct{})
	to.AnswerShared(func(_ byte, body []byte, closed <-chan struct{}) ([]byte, error) {
		if len(body) > 0 {
			asked <- struct{}{}
			<-closed
		}
		return nil, nil
	})
	slow := serving(t, func(_ Identity, method byte, _ []byte) (byte, []byte) {
		if method == 1 {
			asked <- struct{}{}
			<-t.Context().Done() // the cleanup of the port waits for this answer
		}
		return method, nil
	}, 2)
	caller, _ := open(t, "a", "one", "secret")
	client := NewClient(caller, slow.Addr().String(), "")
	t.Cleanup(client.Close)
	_, _, err := client.Call(soon(t), 2, nil)
	require.NoError(t, err)
	m := Message{Addr: far.Addr().String(), To: "b"}
	_, err = from.AskShared(soon(t), m)
	require.NoError(t, err)
	shared, own := linkTo(near, m.Addr), client.link
	m.Body = []byte("no answer")
	for _, ask := range []func(context.Context) error{
		func(ctx context.Context) error { _, err := from.AskShared(ctx, m); return err },
		func(ctx context.Context) error { _, _, err := client.Call(ctx, 1, nil); return err },
	} {
		ctx, giveUp := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- ask(ctx) }()
		<-asked
		giveUp()
		require.ErrorIs(t, <-ended, ErrNoAnswer)
	}
	_, _, err = client.Call(soon(t), 2, nil)
	require.NoError(t, err)
	m.Body = nil
	_, err = from.AskShared(soon(t), m)
	require.NoError(t, err)
	require.Same(t, shared, linkTo(near, m.Addr))
	require.Same(t, own, client.link)
	require.Empty(t, own.waiting)
}

// endingContext is a context whose deadline passes when the test closes it. No time limits what happens before.
type endingContext struct {
	context.Context
	passed chan struct{}
}

func newEndingContext(t *testing.T) endingContext {
	return endingContext{t.Context(), make(chan struct{})}
}

func (c endingContext) Done() <-chan struct{} { return c.passed }

func (c endingContext) Err() error {
	select {
	case <-c.passed:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// TestASlowCallEndsNoConnection checks that a call without an answer in time leaves the connection to the calls beside
// it, as long as others are answered. If none is, it ends the connection.
func TestASlowCallEndsNoConnection(t *testing.T) {
	const slow, held, quick = 1, 2, 3
	asked, release := make(chan struct{}), make(chan struct{})
	releaseHeld := sync.OnceFunc(func() { close(release) })
	stuck := make(chan struct{}, 2)
	far := serving(t, func(_ Identity, method byte, _ []byte) (byte, []byte) {
		switch method {
		case slow:
			stuck <- struct{}{}
			<-t.Context().Done()
		case held:
			asked <- struct{}{}
			<-release
		}
		return method, nil
	})
	t.Cleanup(releaseHeld) // the cleanup of the port waits for the held call, also after a failure
	caller, _ := open(t, "a", "one", "secret")
	client := NewClient(caller, far.Addr().String(), "")
	t.Cleanup(client.Close)
	answered := make(chan error, 1)
	go func() {
		_, _, err := client.Call(soon(t), held, nil)
		answered <- err
	}()
	<-asked
	late := func(beside func()) {
		ctx, ended := newEndingContext(t), make(chan error, 1)
		go func() { _, _, err := client.Call(ctx, slow, nil); ended <- err }()
		<-stuck
		beside()
		close(ctx.passed)
		require.ErrorIs(t, <-ended, ErrNoAnswer)
	}
	own := client.link
	late(func() {
		_, _, err := client.Call(soon(t), quick, nil)
		require.NoError(t, err)
	})
	require.Same(t, own, client.link)
	require.False(t, own.broken())
	releaseHeld()
	require.NoError(t, <-answered, "the call beside the slow one")
	late(func() {})
	require.True(t, own.broken(), "no other call was answered")
}
